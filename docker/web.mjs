// For the gateway of a web task, as `node --import`: leads OpenClaw's web tools to the egress proxy.
//
// They look every name up before anything else, and `web_fetch` then connects by itself, past HTTP_PROXY. But here no
// name can be looked up, and the proxy is the only way out; it looks names up and refuses what is not public, so
// nothing is lost by not doing it here.
import dns from 'node:dns/promises';
import fs from 'node:fs';
import { createRequire, syncBuiltinESMExports } from 'node:module';
import net from 'node:net';

// Passes for a public address, belongs to nobody, and nobody connects to it.
const STAND_IN = { address: '2000::1', family: 6 };

delete process.env.NODE_OPTIONS; // for this process alone, not for what the agent starts

const { lookup } = dns;
dns.lookup = async (host, options) => {
  if (net.isIP(host) || host === 'localhost') return lookup(host, options);
  return options?.all ? [STAND_IN] : STAND_IN;
};
syncBuiltinESMExports();

// OpenClaw 2026.3.24 takes its HTTP client's classes from here, if they are. Loaded when first asked for.
let classes;
function load() {
  if (!classes) {
    const { EnvHttpProxyAgent, ProxyAgent } = createRequire(fs.realpathSync(process.argv[1]))('undici');
    class Agent extends EnvHttpProxyAgent {
      constructor() { super(); } // without the options of a direct connection
    }
    classes = { Agent, EnvHttpProxyAgent, ProxyAgent };
  }
  return classes;
}
globalThis.__OPENCLAW_TEST_UNDICI_RUNTIME_DEPS__ = {
  get Agent() { return load().Agent; },
  get EnvHttpProxyAgent() { return load().EnvHttpProxyAgent; },
  get ProxyAgent() { return load().ProxyAgent; },
};
