// Drives a cluster with OpenPAI's own client, unmodified. Prints one line of JSON for each check: {what, right, seen}.
//   node pai_sdk.js HOST:PORT/rest-server ADMIN_PASSWORD
const { PAIV2 } = require('@microsoft/openpai-js-sdk');

const [uri, password] = process.argv.slice(2);
const client = (username, secret) => new PAIV2.OpenPAIClient({ rest_server_uri: uri, username, password: secret });
const check = (what, right, seen) => console.log(JSON.stringify({ what, right: Boolean(right), seen: seen === undefined ? null : seen }));

async function refused(what, code, call) {
  try {
    check(what, false, await call());
  } catch (error) {
    const data = (error.response && error.response.data) || error.data || error;
    check(what, data.code === code, data.code || String(error));
  }
}

async function until(condition, seconds) {
  for (const end = Date.now() + seconds * 1000; Date.now() < end; ) {
    if (await condition()) return true;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  return false;
}

const job = (name, command, virtualCluster) => ({
  protocolVersion: 2,
  name,
  type: 'job',
  prerequisites: [{ type: 'dockerimage', name: 'image', uri: 'any' }],
  taskRoles: {
    train: {
      instances: 1,
      dockerImage: 'image',
      resourcePerInstance: { cpu: 1, memoryMB: 128, gpu: 1 },
      commands: [command],
    },
  },
  defaults: { virtualCluster },
  extras: { hivedScheduler: { jobPriorityClass: 'prod' } },
});

async function people(admin) {
  await admin.user.createUser({ username: 'alice', password: 'alice-pw', email: 'a@b.c', virtualCluster: ['default'] });
  const users = await admin.user.getAllUser();
  check('users are listed', users.map((each) => each.username).sort().join() === 'admin,alice', users);
  await refused('a user twice', 'ConflictUserError', () => admin.user.createUser({ username: 'alice', password: 'alice-pw' }));
  await refused('an unknown user', 'NoUserError', () => admin.user.getUser('nobody'));
  await admin.user.updateUser({ username: 'alice', email: 'new@b.c' }, true);
  check('a user is changed', (await admin.user.getUser('alice')).email === 'new@b.c');
  await admin.group.createGroup({ groupname: 'team', description: 'd', externalName: '', extension: {} });
  check('a group is made', (await admin.group.getGroup('team')).description === 'd');
  await admin.user.updateUserGroup('alice', 'team');
  check('it has a member', (await admin.group.getGroupMembers('team')).length === 1);
  await admin.user.deleteUserGroup('alice', 'team');
  await admin.group.deleteGroup('team');
  check('it is removed', !(await admin.group.getAllGroup()).some((each) => each.groupname === 'team'));
}

async function cluster(admin) {
  const info = await admin.api.getClusterInfo();
  check('the cluster says what it is', info.launcherType === 'k8s', info);
  const vcs = await admin.virtualCluster.listVirtualClusters();
  check('virtual clusters', Object.keys(vcs).sort().join() === 'default,vc1', vcs);
  check('one of them', (await admin.virtualCluster.getVirtualCluster('vc1')).resourcesTotal.GPUs === 1);
  check('its sku types', 'GPU-D' in (await admin.virtualCluster.getVirtualClusterSkuTypes('vc1')));
  check('storages', Array.isArray((await admin.storage.getStorages()).storages));
  check('nodes', (await admin.kubernetes.getK8sNodes()).items.length === 2);
  check('pods', Array.isArray((await admin.kubernetes.getK8sPods({ namespace: 'default' })).items));
}

async function tokens(alice) {
  const made = await alice.token.createApplicationToken();
  check('an application token', made.application === true, made);
  check('is listed', (await alice.token.getTokens()).tokens.includes(made.token));
  await alice.token.deleteToken(made.token);
  check('and revoked', !(await alice.token.getTokens()).tokens.includes(made.token));
}

async function jobs(alice, admin) {
  await alice.job.createJob(job('sdk-job', 'echo from the sdk', 'default'));
  const state = async () => (await alice.job.getJob('alice', 'sdk-job')).jobStatus.state;
  check('a job succeeds', await until(async () => (await state()) === 'SUCCEEDED', 60), await state());
  await refused('a foreign virtual cluster', 'ForbiddenUserError', () => alice.job.createJob(job('other', 'true', 'vc1')));
  await refused('the same name twice', 'ConflictJobError', () => alice.job.createJob(job('sdk-job', 'true', 'default')));
  const list = await alice.job.listJobs({ username: 'alice', limit: 10, withTotalCount: true });
  check('jobs are listed', list.totalCount === 1 && list.data[0].name === 'sdk-job', list);
  check('by state', (await alice.job.listJobs({ state: 'FAILED' })).length === 0);
  check('its configuration', (await alice.job.getJobConfig('alice', 'sdk-job')).name === 'sdk-job');
  check('an attempt', (await alice.job.getJob('alice', 'sdk-job', 0)).name === 'sdk-job');
  await alice.job.addTag('alice', 'sdk-job', 'mine');
  check('a tag', (await alice.job.listJobs({ tagsContain: 'mine' })).length === 1);
  await alice.job.deleteTag('alice', 'sdk-job', 'mine');
  check('no tag', (await alice.job.listJobs({ tagsContain: 'mine' })).length === 0);
  check('events', (await alice.job.listEvents('alice', 'sdk-job', {})).totalCount > 0);
  const task = await alice.job.getTask('alice', 'sdk-job', 0, 'train', 0);
  check('a task', task.attempts.length === 1, task);
  const logs = await alice.job.getTaskLogs('alice', 'sdk-job', 0, 'train', 0, 0);
  check('where its log is', logs.locations.length > 0, logs);
  check('job attempts', (await alice.jobHistory.getJobAttempts('alice', 'sdk-job')).length === 1);
  await refused('an unknown job', 'NoJobError', () => alice.job.getJob('alice', 'none'));
  await alice.job.createJob(job('sdk-long', 'sleep 600', 'default'));
  const long = async () => (await alice.job.getJob('alice', 'sdk-long')).jobStatus.state;
  check('a long job runs', await until(async () => (await long()) === 'RUNNING', 60), await long());
  await admin.job.updateJobExecutionType('alice', 'sdk-long', 'STOP');
  check('and is stopped', await until(async () => (await long()) === 'STOPPED', 60), await long());
}

async function main() {
  const admin = client('admin', password);
  const login = await admin.authn.basicLogin();
  check('the admin logs in', login.admin === true, login.user);
  await people(admin);
  await cluster(admin);
  const alice = client('alice', 'alice-pw');
  await tokens(alice);
  await jobs(alice, admin);
  await refused('users are the admins\u2019', 'ForbiddenUserError', () => alice.user.deleteUser('admin'));
  await alice.authn.basicLogout();
  await refused('a token after logout', 'UnauthorizedUserError', () => alice.user.getAllUser());
}

main().catch((error) => {
  check('the whole course', false, String((error && error.stack) || error));
  process.exit(1);
});
