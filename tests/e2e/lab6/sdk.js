// OpenPAI's own client, unmodified, at the end of a pipe: each line on stdin is a call {person, method, arguments}, each
// line on stdout its answer {status, body}.
//   node sdk.js HOST:PORT/rest-server
const readline = require('readline');
const { PAIV2 } = require('@microsoft/openpai-js-sdk');

const people = {};

async function call({ person, method, arguments: values }) {
  if (method === 'login') {
    const [password] = values;
    people[person] = new PAIV2.OpenPAIClient({ rest_server_uri: process.argv[2], username: person, password });
    return { status: 200, body: await people[person].authn.basicLogin() };
  }
  const [group, name] = method.split('.');
  const body = await people[person][group][name](...values);
  return { status: (body && body.status) || 200, body: body === undefined ? null : body };
}

function failure(error) {
  const response = error.response || error;
  return { status: response.status || 0, body: response.data || error.data || { code: '', message: String(error) } };
}

async function main() {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    console.log(JSON.stringify(await call(JSON.parse(line)).catch(failure)));
  }
}

main();
