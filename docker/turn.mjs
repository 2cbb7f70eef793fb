// One agent turn over the gateway's WebSocket, from inside: OpenClaw's own command line takes 5 s to start.
//
//   node turn.mjs JOB.json
//
// The job: {port, token, wait, params}. `wait`: seconds to wait for the gateway to be up; `params`: of the gateway's
// method `agent` (message, sessionId, timeout, ...). Prints one JSON object, {status, ready, took, payload | error}:
//   final         the gateway's last word on the turn is in `payload` (which may tell of a failed model)
//   refused       it did not accept the connection or the turn; its `error`
//   closed        the connection ended during the turn
//   unreachable   no gateway within `wait` seconds
// `ready` and `took` are the seconds until the gateway was up, and from then on. Exit code 0 with any of these.
// The turn goes on when this process is killed.
import crypto from 'node:crypto';
import fs from 'node:fs';

const RETRY_MS = 50;
const SCOPES = ['operator.read', 'operator.write', 'operator.admin'];
const CLIENT = { id: 'gateway-client', version: '1.0.0', platform: 'linux', mode: 'backend' };
const ROLE = 'operator';
const PROTOCOL = 3;

/** Return the `connect` parameters; without a signed device the gateway drops the scopes. */
function credentials(token, nonce) {
  const { publicKey, privateKey } = crypto.generateKeyPairSync('ed25519');
  const raw = publicKey.export({ type: 'spki', format: 'der' }).subarray(-32);
  const id = crypto.createHash('sha256').update(raw).digest('hex');
  const signedAt = Date.now();
  const signed = ['v3', id, CLIENT.id, CLIENT.mode, ROLE, SCOPES.join(','), signedAt, token, nonce, CLIENT.platform, ''];
  const signature = crypto.sign(null, Buffer.from(signed.join('|')), privateKey).toString('base64url');
  return {
    minProtocol: PROTOCOL,
    maxProtocol: PROTOCOL,
    client: CLIENT,
    role: ROLE,
    scopes: SCOPES,
    caps: [],
    auth: { token },
    device: { id, publicKey: raw.toString('base64url'), signature, signedAt, nonce },
  };
}

/** Resolve to a result without the times; null if the connection ended before the gateway accepted it. */
function attempt(job, onReady) {
  return new Promise((resolve) => {
    const socket = new WebSocket(`ws://127.0.0.1:${job.port}`);
    const send = (id, params) => socket.send(JSON.stringify({ type: 'req', id, method: id, params }));
    let accepted = false;
    const ended = (error) => resolve(accepted ? { status: 'closed', error } : null);
    socket.onclose = ({ code, reason }) => ended({ code, reason });
    socket.onerror = ({ message }) => ended({ message }); // a refused connection gives no close event
    socket.onmessage = ({ data }) => {
      const frame = JSON.parse(data);
      if (frame.event === 'connect.challenge') send('connect', credentials(job.token, frame.payload.nonce));
      if (frame.type !== 'res') return;
      if (!frame.ok) resolve({ status: 'refused', error: frame.error });
      else if (frame.id === 'connect') {
        accepted = true;
        onReady();
        send('agent', { deliver: false, idempotencyKey: crypto.randomUUID(), ...job.params });
      } else if (frame.payload.status !== 'accepted') resolve({ status: 'final', payload: frame.payload });
    };
  });
}

function report(result) {
  process.stdout.write(`${JSON.stringify(result)}\n`, () => process.exit(0));
}

const job = JSON.parse(fs.readFileSync(process.argv[2], 'utf8'));
const start = performance.now();
const seconds = () => (performance.now() - start) / 1000;
let ready = null;
const patience = setTimeout(
  () => report({ status: 'unreachable', ready, took: 0, error: { message: `no gateway within ${job.wait} s` } }),
  job.wait * 1000,
);
const onReady = () => { ready = seconds(); clearTimeout(patience); };
let result;
while (!(result = await attempt(job, onReady))) await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
report({ ...result, ready, took: seconds() - (ready ?? 0) });
