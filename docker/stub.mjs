// A model for the image build: calls `exec` once, then answers. node stub.mjs SOCKET
import http from 'node:http';

const CALL = { index: 0, id: 'call_1', type: 'function', function: { name: 'exec', arguments: '{"command":"true"}' } };

function reply(request, response) {
  const done = request.messages.some(({ role }) => role === 'tool');
  const delta = done ? { role: 'assistant', content: 'done' } : { role: 'assistant', tool_calls: [CALL] };
  const chunk = (fields) => {
    const head = { id: 'stub', object: 'chat.completion.chunk', created: 1, model: request.model };
    response.write(`data: ${JSON.stringify({ ...head, ...fields })}\n\n`);
  };
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  chunk({ choices: [{ index: 0, delta, finish_reason: null }] });
  chunk({ choices: [{ index: 0, delta: {}, finish_reason: done ? 'stop' : 'tool_calls' }] });
  chunk({ choices: [], usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 } });
  response.end('data: [DONE]\n\n');
}

const server = http.createServer(async (request, response) => {
  const parts = await request.toArray();
  reply(JSON.parse(Buffer.concat(parts)), response);
});
server.listen(process.argv[2]);
