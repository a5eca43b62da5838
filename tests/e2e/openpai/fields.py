"""The protocol, field by field (docs/openpai.md)."""
from rows import Row, job

PLUGIN = "com.microsoft.pai.runtimeplugin"


def refused(text, **more):
    return lambda w: w.refused(job("never", **more), 400, "InvalidProtocolError", text)


def both(*checks):
    return lambda w: all(check(w) for check in checks)


def becomes(look, role=None, **more):
    """A job with these members becomes something of which `look` is true."""
    return lambda w: look(w.made(job(role=role, **more)))


def cells_of(**scheduler):
    return {"extras": {"hivedScheduler": scheduler}}


def with_prerequisite(**one):
    return [{"name": "image", "type": "dockerimage", "uri": "any"}, one]


TWO_ROLES = {
    "train": {"dockerImage": "image", "resourcePerInstance": {"cpu": 1, "memoryMB": 1, "gpu": 0}, "commands": ["a"]},
    "Eval_2": {"dockerImage": "image", "resourcePerInstance": {"cpu": 1, "memoryMB": 1, "gpu": 0}, "commands": ["b"]},
}
AUTH = {"username": "u", "password": "<% $secrets.word %>", "registryuri": "r.example"}
HOOK = {
    "name": "hook",
    "type": "script",
    "plugin": PLUGIN + ".cmd",
    "failurePolicy": "ignore",
    "callbacks": [{"event": "taskStarts", "commands": ["echo a"]}, {"event": "taskSucceeds", "commands": ["echo b"]}],
}


def plugin(name, **parameters):
    return {"extras": {PLUGIN: [{"plugin": name, "parameters": parameters}]}}


FIELDS = [
    Row(
        "`protocolVersion`",
        '2 or "2", required',
        both(
            becomes(lambda m: True, protocolVersion="2"),
            refused("should be equal to one of the allowed values", protocolVersion=3),
            refused("should have required property 'protocolVersion'", protocolVersion=None),
        ),
        '2 and "2" are taken, 3 and none are 400',
    ),
    Row(
        "`name`",
        "letters, digits, `_`, `-`; at most 255; once a user",
        both(
            lambda w: w.made(job("a" * 255)).notes["jobName"] == "a" * 255,
            lambda w: w.refused(job("a" * 256), 400, "InvalidProtocolError", "NOT be longer than 255 characters"),
            lambda w: w.refused(job("a b"), 400, "InvalidProtocolError", "should match pattern"),
        ),
        "255 characters are taken, 256 and a blank are 400",
    ),
    Row("`type`", "`job`", refused("allowed values", type="data"), "another type is 400"),
    Row(
        "`version`, `contributor`, `description`",
        "kept, no effect",
        becomes(
            lambda m: all(word in m.config for word in ("version: 1.5", "contributor: me", "description: words")),
            version=1.5,
            contributor="me",
            description="words",
        ),
        "all three stand in the stored configuration",
    ),
    Row("other keys", "refused", refused("should NOT have additional properties", more=1), "an unknown key is 400"),
    Row(
        "`prerequisites[]` `dockerimage`: `uri`, `auth`",
        "the image of roles that name it; `auth` becomes a pull secret, rendered with `$secrets`",
        becomes(
            lambda m: m.app["image"] == "any"
            and m.pod["spec"]["imagePullSecrets"][0]["name"].endswith("-regcred-train")
            and "hush" not in m.config,
            prerequisites=[{"name": "image", "type": "dockerimage", "uri": "any", "auth": AUTH}],
            secrets={"word": "hush"},
        ),
        "the pod names image and secret, and the configuration shows no password",
        "same; a password that stands there in plain text is masked, too",
        "everybody may read every configuration",
    ),
    Row(
        "`prerequisites[]` `data`, `script`, `output`: `uri`",
        "available to the templates of roles that name them",
        becomes(
            lambda m: m.commands == ["echo /b"],
            role={"data": "digits", "commands": ["echo <% $data.uri[1] %>"]},
            prerequisites=with_prerequisite(name="digits", type="data", uri=["/a", "/b"]),
        ),
        "`$data.uri[1]` is the second address",
    ),
    Row(
        "`prerequisites[]` with `plugin`, `callbacks`, `require`, `failurePolicy`",
        "commands before a task in order, after its success in reverse order",
        becomes(
            lambda m: m.runtime["roles"][0]["starts"] == [{"commands": ["echo a"], "mayFail": True}]
            and m.runtime["roles"][0]["succeeds"] == [{"commands": ["echo b"], "mayFail": True}],
            role={"prerequisites": ["hook"]},
            prerequisites=[{"name": "image", "type": "dockerimage", "uri": "any"}, HOOK],
        ),
        "both callbacks arrive; that they run: `e2e.pai_jobs`, plugins and prerequisites run around the commands",
    ),
    Row(
        "`parameters`, `<% $parameters.a.b %>`",
        "plain look-ups; what is not there stays as written",
        becomes(
            lambda m: m.commands == ["echo 5 <% $parameters.none %>"],
            role={"commands": ["echo <% $parameters.a.b %> <% $parameters.none %>"]},
            parameters={"a": {"b": 5}},
        ),
        "one is replaced, a name of nothing stays",
    ),
    Row(
        "`secrets`, `<% $secrets.x %>`",
        "rendered inside the pod only; stored as `******`",
        becomes(
            lambda m: m.commands == ["echo <% $secrets.word %> <% $secrets.none %>"]
            and "hush" not in str(m.framework)
            and "******" in m.config,
            role={"commands": ["echo <% $secrets.word %> <% $secrets.none %>"]},
            secrets={"word": "hush"},
        ),
        "the Framework holds no secret; in the pod: `e2e.pai_jobs`, a secret is rendered in the pod",
    ),
    Row(
        "`jobRetryCount`",
        "default 0; counts unknown failures only",
        both(
            becomes(lambda m: m.framework["spec"]["retryPolicy"] == {"fancyRetryPolicy": True, "maxRetryCount": 0}),
            becomes(lambda m: m.framework["spec"]["retryPolicy"]["maxRetryCount"] == 3, jobRetryCount=3),
            refused("should be >= 0", jobRetryCount=-1),
        ),
        "0, 3 and -1; counting: `controllers_test` Framework.ExitCodesSayWhetherItIsTriedAgain",
        "same; pods that fail again and again come back after 10 s, 20 s … 5 min, preempted ones at once",
        "a pod that fails at once would be created again without end",
    ),
    Row(
        "`taskRoles.ROLE`",
        "a role of the Framework, in lower case without signs",
        both(
            lambda w: [
                role["name"] for role in w.made(job(taskRoles=TWO_ROLES, extras={"gangAllocation": False})).roles
            ]
            == ["train", "eval2"],
            lambda w: w.refused(job("x", taskRoles={"1a": TWO_ROLES["train"]}), 400, "InvalidProtocolError", "'1a' is"),
        ),
        "Eval_2 becomes eval2, 1a is 400",
        "same; two roles whose pods would have one name are refused, and so are more than 64",
        "OpenPAI creates the second one's pods in vain",
    ),
    Row(
        "`instances`",
        "default 1, no bound",
        both(
            becomes(lambda m: m.role["taskNumber"] == 1),
            lambda w: w.made(job(role={"instances": 10000}, extras={"gangAllocation": False})).role["taskNumber"]
            == 10000,
            refused("should be <= 10000", role={"instances": 10001}),
        ),
        "1 without it, 10,000 are taken, 10,001 are 400",
        "at most 10,000 in a job",
        "the definition of a Framework has this bound; OpenPAI fails later, at its API server",
    ),
    Row(
        "`completion.minFailedInstances`",
        "default 1; null and 0 are the default, -1 never",
        both(
            becomes(lambda m: m.role["frameworkAttemptCompletionPolicy"]["minFailedTaskCount"] == 1),
            becomes(
                lambda m: m.role["frameworkAttemptCompletionPolicy"]["minFailedTaskCount"] == -1,
                role={"completion": {"minFailedInstances": -1}},
            ),
        ),
        "1 without it, -1 stays",
    ),
    Row(
        "`completion.minSucceededInstances`",
        "default all instances",
        both(
            becomes(
                lambda m: m.role["frameworkAttemptCompletionPolicy"]["minSucceededTaskCount"] == 3,
                role={"instances": 3, "completion": {"minSucceededInstances": 0}},
                extras={"gangAllocation": False},
            ),
            becomes(
                lambda m: m.role["frameworkAttemptCompletionPolicy"]["minSucceededTaskCount"] == 2,
                role={"instances": 3, "completion": {"minSucceededInstances": 2}},
                extras={"gangAllocation": False},
            ),
        ),
        "3 of 3 without it, 2 when it says so",
    ),
    Row(
        "`taskRetryCount`",
        "only of incremental jobs",
        both(
            becomes(
                lambda m: m.role["task"]["retryPolicy"] == {"fancyRetryPolicy": False, "maxRetryCount": 0},
                role={"taskRetryCount": 2},
            ),
            becomes(
                lambda m: m.role["task"]["retryPolicy"] == {"fancyRetryPolicy": True, "maxRetryCount": 2},
                role={"taskRetryCount": 2},
                extras={"gangAllocation": False},
            ),
        ),
        "0 in a gang, 2 in an incremental job",
    ),
    Row(
        "`dockerImage`, `data`, `script`, `output`, `prerequisites[]` of a role",
        "names of prerequisites of that type",
        both(
            *(refused("Prerequisite nope does not exist.", role={name: "nope"}) for name in ("dockerImage", "data")),
            *(refused("Prerequisite nope does not exist.", role={name: "nope"}) for name in ("script", "output")),
            refused("Prerequisite nope does not exist.", role={"prerequisites": ["nope"]}),
        ),
        "each that does not exist is 400 with its name",
    ),
    Row(
        "`extraContainerOptions.shmMB`",
        "default 512",
        both(
            becomes(lambda m: m.pod["spec"]["volumes"][1]["emptyDir"]["sizeLimit"] == "512Mi"),
            becomes(
                lambda m: m.pod["spec"]["volumes"][1]["emptyDir"]["sizeLimit"] == "64Mi",
                role={"extraContainerOptions": {"shmMB": 64}},
            ),
        ),
        "/dev/shm has 512 MiB, or what is said",
    ),
    Row(
        "`extraContainerOptions.infiniband`",
        "`rdma/hca: 1`",
        becomes(
            lambda m: m.app["resources"]["limits"]["rdma/hca"] == "1",
            role={"extraContainerOptions": {"infiniband": True}},
        ),
        "the limit is there",
    ),
    Row(
        "`resourcePerInstance.cpu`, `memoryMB`, `gpu`",
        "limits; GPUs by HiveD's cells; `github.com/fuse: 1` beside them",
        both(
            becomes(
                lambda m: m.app["resources"]["limits"]
                == {"cpu": "2", "memory": "256Mi", "hivedscheduler.microsoft.com/pod-scheduling-enable": "1"},
                role={"resourcePerInstance": {"cpu": 2, "memoryMB": 256}},
            ),
            becomes(lambda m: m.env["NVIDIA_VISIBLE_DEVICES"] == "none", role={"resourcePerInstance": {"gpu": 0}}),
            refused("should have required property 'gpu'", role={"resourcePerInstance": {"gpu": None}}),
        ),
        "limits as asked, no device without GPU, a missing number is 400",
        "same without `github.com/fuse`",
        "no node here offers that device, and a pod that asked for it would wait forever",
    ),
    Row(
        "`resourcePerInstance.ports`",
        "`ssh` and `http` are always there; numbers from the MD5 of the pod's uid, 15000 to 39999",
        both(
            becomes(
                lambda m: m.runtime["roles"][0]["ports"] == {"ssh": 1, "http": 1, "grpc": 2},
                role={"resourcePerInstance": {"ports": {"grpc": 2}}},
            ),
            refused("should be <= 1000", role={"resourcePerInstance": {"ports": {"grpc": 1001}}}),
        ),
        "three labels; the numbers: `e2e.pai_jobs`, ports by the formula",
        "same; at most 1,000 of a label and as many in all as the range has",
        "every task knows every other's ports",
    ),
    Row(
        "`commands`",
        "bash with errexit, nounset and pipefail; the first that fails ends the task",
        "pai_test: PaiRuntime.TheFirstCommandThatFailsEndsTheTask",
    ),
    Row(
        "`deployments[]`, `defaults.deployment`",
        "commands before and after those of the role",
        both(
            becomes(
                lambda m: m.commands == ["echo pre", "echo hello", "echo post"],
                deployments=[
                    {"name": "d", "taskRoles": {"train": {"preCommands": ["echo pre"], "postCommands": ["echo post"]}}}
                ],
                defaults={"deployment": "d"},
            ),
            refused("Default deployment none does not exist.", defaults={"deployment": "none"}),
        ),
        "three commands in order; one that does not exist is 400",
    ),
    Row(
        "`defaults.virtualCluster`",
        "default `default`; 403 for one that the user may not use, and for one that does not exist",
        both(
            becomes(lambda m: m.cells["virtualCluster"] == "default"),
            lambda w: w.refused(
                job("x", defaults={"virtualCluster": "vc1"}),
                403,
                "ForbiddenUserError",
                "not allowed to do operation in vc1",
            ),
            lambda w: w.made(job("x", defaults={"virtualCluster": "vc1"}), w.admin).cells["virtualCluster"] == "vc1",
        ),
        "alice's default, her 403 in vc1, the administrator in vc1",
    ),
    Row(
        "`extras.gangAllocation`",
        "anything but `false` is a gang: one affinity group, then a barrier",
        both(
            becomes(lambda m: m.cells["affinityGroup"]["name"] == "alice~dry/default" and m.runtime["gang"]),
            becomes(
                lambda m: m.cells["affinityGroup"] is None and not m.runtime["gang"], extras={"gangAllocation": False}
            ),
        ),
        "one group or none; that it waits: `e2e.lab6_rest`",
    ),
    Row(
        "`extras.hivedScheduler.jobPriorityClass`",
        "prod 100, test 10 (default), oppo -1; crit refused by the server's schema",
        both(
            *(
                becomes(lambda m, number=number: m.cells["priority"] == number, **cells_of(jobPriorityClass=name))
                for name, number in (("crit", 120), ("prod", 100), ("test", 10), ("oppo", -1))
            ),
            becomes(lambda m: m.cells["priority"] == 10),
            refused("allowed values", **cells_of(jobPriorityClass="high")),
        ),
        "four numbers, 10 without it, another word is 400",
        "crit (120) is taken",
        "the protocol's document has it",
    ),
    Row(
        "`extras.hivedScheduler.taskRoles.ROLE.skuType`",
        "a leaf cell type of the virtual cluster",
        both(
            becomes(
                lambda m: m.cells["leafCellType"] == "GPU-C", **cells_of(taskRoles={"train": {"skuType": "GPU-C"}})
            ),
            refused("has unknown skuType K80", **cells_of(taskRoles={"train": {"skuType": "K80"}})),
            refused("VC default only allows GPU-C", **cells_of(taskRoles={"train": {"skuType": "GPU-D"}})),
            refused("Taskrole none does not exist.", **cells_of(taskRoles={"none": {"skuType": "GPU-C"}})),
        ),
        "its own type; an unknown one, another cluster's and a role that does not exist are 400",
    ),
    Row(
        "… `skuNum`, `skuNumber`",
        "written by the portal; the server computes it",
        becomes(
            lambda m: m.cells["leafCellNumber"] == 1,
            **cells_of(taskRoles={"train": {"skuNum": 7, "skuNumber": 7}}),
        ),
        "7 is asked for, 1 is what the GPUs need",
    ),
    Row(
        "… `pinnedCellId`",
        "instead of skuType",
        both(
            becomes(lambda m: m.cells["pinnedCellId"] == "p", **cells_of(taskRoles={"train": {"pinnedCellId": "p"}})),
            refused(
                "has both skuType and pinnedCellId, only one is allowed.",
                **cells_of(taskRoles={"train": {"pinnedCellId": "p", "skuType": "GPU-C"}}),
            ),
        ),
        "it is passed on; both together are 400",
    ),
    Row(
        "… `affinityGroupName`",
        "roles of one name are one group",
        becomes(
            lambda m: m.cells["affinityGroup"]["name"] == "alice~dry/g",
            **cells_of(taskRoles={"train": {"affinityGroupName": "g"}}),
        ),
        "the group is alice~dry/g",
    ),
    Row(
        "… `gangReleaseEnable`, `lazyPreemptionEnable`, `ignoreK8sSuggestedNodes`",
        "passed to HiveD",
        becomes(
            lambda m: m.cells["lazyPreemptionEnable"] is True and m.cells["gangReleaseEnable"] is False,
            **cells_of(lazyPreemptionEnable=True, gangReleaseEnable=False, ignoreK8sSuggestedNodes=True),
        ),
        "they stand in the pod's scheduling spec",
    ),
    Row(
        f"`extras.{PLUGIN}` `ssh`",
        "a key pair for the job, sshd in each task, a barrier of `sshbarrierTimeout` minutes",
        becomes(
            lambda m: m.notes["muster.dev/ssh-secret"].endswith("-ssh"),
            **plugin("ssh", jobssh=True, sshbarrier=True),
        ),
        "the job has a key pair; that it works: `e2e.pai_jobs`, tasks reach each other by ssh",
        "same; the pair is ECDSA",
        "shorter, and made at once",
    ),
    Row(
        "… `cmd`",
        "`preCommands` before the user's, `postCommands` after them",
        "e2e.pai_jobs: plugins and prerequisites run around the commands",
    ),
    Row(
        "… `tensorboard`",
        "beside the commands of the first task, with `port` and `logdir`",
        "pai_test: PaiRuntime.TensorboardRunsBesideTheFirstTaskOnly",
    ),
    Row(
        "… `git`",
        "clones `repo` with `options` into `clone_dir`",
        "pai_test: PaiRuntime.GitClonesWhatItIsToldWithoutTheShellsHelp",
    ),
    Row(
        "… `teamwise_storage`, `extras.storages[]`",
        "PersistentVolumeClaims, mounted at `/mnt/NAME` or `mountPath`; an empty list is the user's default storages; a claim "
        "labelled `share=false` shows its user's folder only",
        lambda w: w.made(job(extras={"storages": [{"name": "common"}, {"name": "common", "mountPath": "/mine"}]})).app[
            "volumeMounts"
        ][2:]
        == [{"name": "storage-0", "mountPath": "/mnt/common"}, {"name": "storage-0", "mountPath": "/mine"}],
        "both places; that files arrive: `e2e.pai_jobs`, storages are mounted, private ones by user",
    ),
    Row(
        "`extras.jobStatusChangeNotification`",
        "mail, where the cluster has a mail server",
        becomes(
            lambda m: m.notes["muster.dev/notify"] == "failed",
            extras={"jobStatusChangeNotification": {"failed": True, "running": False}},
        ),
        "what is asked for is noted; that it is reported: `e2e.pai_jobs`, who asked is told",
        "events `JobRunning`, `JobRetried`, `JobSucceeded`, `JobFailed`, `JobStopped` on the Framework",
        "events can be forwarded to whatever a site uses, including mail",
    ),
    Row(
        "`extras.submitFrom`, other keys of `extras`",
        "kept, no effect",
        becomes(
            lambda m: "submitFrom: me" in m.config and "another: 1" in m.config,
            extras={"submitFrom": "me", "another": 1},
        ),
        "both stand in the stored configuration",
    ),
    Row(
        "`PAI_*` and `FC_*` variables",
        "names of tasks, addresses, ports, counts",
        becomes(
            lambda m: m.env["PAI_JOB_NAME"] == "alice~dry"
            and m.env["PAI_TASK_ROLE_LIST"] == "train"
            and m.env["PAI_RESOURCE_train"] == "1,1,128,512"
            and m.env["PAI_VIRTUAL_CLUSTER"] == "default"
        ),
        "the static ones; those of addresses: `e2e.pai_jobs`, addresses of everybody",
        "same; `PAI_HOST_IP_…` is the task's own address on virtual nodes",
        "virtual nodes share one machine, so pods have their own addresses there",
    ),
    Row(
        "the barrier of a gang",
        "polls every 10 s, exit code 251 after 10 minutes",
        "e2e.pai_jobs: addresses of everybody",
        here="a watch instead of polls; same limit and code",
        why="tasks begin as soon as the last has its address",
    ),
    Row(
        "an image that does not exist",
        "code 254, not tried again",
        "agent.images: an_openpai_job_whose_image_is_nowhere_ends_with_254",
        here="same; reported by the node that pulls it",
        why="OpenPAI's runtime asks the registry itself before it starts",
    ),
    Row(
        "a port that is in use on the node",
        "code 253, tried again at once, with other ports",
        lambda w: w.port_in_use(),
        "the runtime ends with 253 and names the port",
    ),
    Row(
        "logs of a task",
        "files on its node, for each attempt",
        "e2e.pai_rest: a task's former attempts are known",
        here="the pod's log, which `kubectl logs` shows, too; of former attempts the newest 1,000 on a machine, 1 GiB and 7 days "
        "of them. On nodes of another kubelet logs go with their pods",
        why="nothing has to be installed on nodes",
    ),
]
