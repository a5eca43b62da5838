"""show.py SEED…: a random scenario in short."""
import json
import sys

from generate import certain, scenario


def main(seeds):
    for seed in seeds:
        s = certain(scenario(int(seed)))
        print(json.dumps(s["config"]["actions"]))
        for t in s["config"]["tiers"]:
            print("  tier", json.dumps(t))
        for n in s["nodes"]:
            print("  node", json.dumps(n))
        for q in s["queues"]:
            print("  queue", json.dumps(q))
        for i, step in enumerate(s["steps"]):
            print(f"  step {i} at {step['at']}")
            for op in step["do"]:
                print("     ", json.dumps(op))
            for g, e in step["expect"]["groups"].items():
                print(
                    "        ", g, " ".join(str(x) for x in e.values()), step["expect"].get("placement", {}).get(g, "")
                )
            print("         evicted", step["expect"]["evicted"], step["expect"].get("evicted_pods", ""))


if __name__ == "__main__":
    main(sys.argv[1:])
