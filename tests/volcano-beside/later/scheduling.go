package v1beta1

// QueueAllocationGateKey is a name that Volcano 1.15 uses and its API module 1.14 does not have yet.
const QueueAllocationGateKey = "scheduling.volcano.sh/queue-allocation-gate"
