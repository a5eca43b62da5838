/** Where a new job begins. */
export const TEMPLATES: Record<string, { word: string; yaml: string }> = {
  single: {
    word: 'OpenPAI, one task',
    yaml: `protocolVersion: 2
name: my-job
type: job
prerequisites:
  - protocolVersion: 2
    name: image
    type: dockerimage
    uri: python
taskRoles:
  train:
    instances: 1
    completion:
      minFailedInstances: 1
    dockerImage: image
    resourcePerInstance:
      cpu: 2
      memoryMB: 4096
      gpu: 1
    commands:
      - python3 -c 'print(6 * 7)'
defaults:
  virtualCluster: default
extras:
  hivedScheduler:
    jobPriorityClass: test
`,
  },
  distributed: {
    word: 'OpenPAI, distributed',
    yaml: `protocolVersion: 2
name: my-distributed-job
type: job
prerequisites:
  - protocolVersion: 2
    name: image
    type: dockerimage
    uri: python
taskRoles:
  worker:
    # All of them start together, or none does.
    instances: 2
    completion:
      minFailedInstances: 1
    dockerImage: image
    resourcePerInstance:
      cpu: 2
      memoryMB: 4096
      gpu: 1
    commands:
      - echo "task $PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX"
defaults:
  virtualCluster: default
extras:
  gangAllocation: true
  hivedScheduler:
    jobPriorityClass: test
`,
  },
  pytorch: {
    word: 'PyTorchJob',
    yaml: `apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata:
  name: my-pytorch-job
  namespace: default
spec:
  runPolicy:
    schedulingPolicy:
      queue: default
  pytorchReplicaSpecs:
    Master:
      replicas: 1
      restartPolicy: OnFailure
      template:
        spec:
          containers:
            - name: pytorch
              image: python
              command: [python3, -c, "print(6 * 7)"]
              resources:
                limits:
                  nvidia.com/gpu: 1
    Worker:
      replicas: 1
      restartPolicy: OnFailure
      template:
        spec:
          containers:
            - name: pytorch
              image: python
              command: [python3, -c, "print(6 * 7)"]
              resources:
                limits:
                  nvidia.com/gpu: 1
`,
  },
  mpi: {
    word: 'MPIJob',
    yaml: `apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata:
  name: my-mpi-job
  namespace: default
spec:
  slotsPerWorker: 1
  runPolicy:
    schedulingPolicy:
      queue: default
  mpiReplicaSpecs:
    Launcher:
      replicas: 1
      template:
        spec:
          containers:
            - name: launcher
              image: mpi
              command: [mpirun, -n, "2", hostname]
    Worker:
      replicas: 2
      template:
        spec:
          containers:
            - name: worker
              image: mpi
              resources:
                limits:
                  nvidia.com/gpu: 1
`,
  },
};
