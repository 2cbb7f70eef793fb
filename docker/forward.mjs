// From a TCP port on the container's loopback to a unix socket of the model proxy on the host.
import net from 'node:net';

/** Listen on 127.0.0.1:port and resolve once it is open; each connection gets one of its own to the socket. */
export function forward(port, socket) {
  const server = net.createServer({ allowHalfOpen: true }, (inner) => {
    const outer = net.connect({ path: socket, allowHalfOpen: true });
    inner.on('error', () => outer.destroy());
    outer.on('error', () => inner.destroy());
    inner.pipe(outer);
    outer.pipe(inner);
  });
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', resolve);
  });
}

/** Call back once nobody has listened on the socket for `grace` seconds on end. */
export function whenGone(socket, grace, callback) {
  let alive = performance.now();
  const probe = async () => {
    if (await listens(socket)) alive = performance.now();
    if (performance.now() - alive >= grace * 1000) callback();
    else setTimeout(probe, Math.min(5, grace / 4) * 1000);
  };
  probe();
}

/** A killed proxy leaves the socket's file behind, so only a connection tells. A full backlog is no sign of death. */
function listens(socket) {
  return new Promise((resolve) => {
    const probe = net.connect({ path: socket });
    probe.once('connect', () => { probe.destroy(); resolve(true); });
    probe.once('error', (error) => resolve(!['ENOENT', 'ECONNREFUSED', 'ENOTDIR'].includes(error.code)));
  });
}
