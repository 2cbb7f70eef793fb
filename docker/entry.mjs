// The main process of a trial's container: forwards to the model proxy, runs the agent's server, ends by itself.
//
//   node entry.mjs --socket PATH --port N --seconds N [--grace N] [--forward PORT=SOCKET]... [-- COMMAND ARG...]
//
// Once --port is open, all others that are to be forwarded are, too.
// The container's log is COMMAND's output, and one last line that says why it ended.
import { spawn } from 'node:child_process';
import { parseArgs } from 'node:util';
import { forward, whenGone } from './forward.mjs';

// Exit codes, for the one who watches the container.
const TIME_UP = 124; // --seconds have passed
const PROXY_GONE = 121; // nobody has listened on the socket for --grace seconds
const COMMAND_ENDED = 120; // COMMAND ended, however it did; the log's last line has its status
const BAD_START = 119; // wrong arguments, port taken, COMMAND not found
const STOPPED = 143; // SIGTERM

function end(code, reason) {
  process.stderr.write(`dataclaw: ${reason}\n`, () => process.exit(code));
}

function settings() {
  const option = { type: 'string' };
  const { values, positionals } = parseArgs({
    options: {
      socket: option,
      port: option,
      seconds: option,
      grace: { ...option, default: '30' },
      forward: { ...option, multiple: true, default: [] },
    },
    allowPositionals: true,
  });
  const [port, seconds, grace] = ['port', 'seconds', 'grace'].map((name) => {
    const number = Number(values[name]);
    if (!(number > 0)) throw new Error(`--${name}: expected a number above 0, got ${values[name]}`);
    return number;
  });
  if (!values.socket) throw new Error('--socket: expected a path');
  const others = values.forward.map((text) => {
    const [, other, path] = /^([1-9][0-9]*)=(.+)$/.exec(text) ?? [];
    if (!path) throw new Error(`--forward: expected PORT=SOCKET, got ${text}`);
    return { port: Number(other), socket: path };
  });
  return { socket: values.socket, port, seconds, grace, others, command: positionals };
}

function run([program, ...args]) {
  const child = spawn(program, args, { stdio: ['ignore', 'inherit', 'inherit'] });
  child.once('error', (error) => end(BAD_START, `cannot start ${program}: ${error.message}`));
  child.once('exit', (code, signal) => end(COMMAND_ENDED, `${program} ended with ${signal ?? `status ${code}`}`));
}

process.once('SIGTERM', () => end(STOPPED, 'stopped'));
process.on('SIGUSR1', () => {}); // which would let the agent debug this process
try {
  const { socket, port, seconds, grace, others, command } = settings();
  setTimeout(() => end(TIME_UP, `time is up after ${seconds} s`), seconds * 1000);
  whenGone(socket, grace, () => end(PROXY_GONE, `the model proxy has been gone for ${grace} s`));
  for (const other of others) await forward(other.port, other.socket);
  await forward(port, socket);
  if (command.length > 0) run(command);
} catch (error) {
  end(BAD_START, error.message);
}
