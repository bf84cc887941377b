# SPDX-License-Identifier: MIT
# JSON and dicts: documents are made, written, read again, changed and thrown away.
import json
import random
import sys

rounds = int(sys.argv[1])
random.seed(7)


def document(depth):
    if depth == 0:
        return random.choice([random.random(), random.randrange(1 << 40), 'x' * random.randrange(80), None])
    if random.random() < 0.4:
        return [document(depth - 1) for _ in range(random.randrange(1, 6))]
    return {'key%d' % random.randrange(5000): document(depth - 1) for _ in range(random.randrange(1, 8))}


kept = {}
size = 0
for i in range(rounds):
    text = json.dumps([document(5) for _ in range(4)], indent=i % 3)
    size += len(text)
    kept[i % 200] = json.loads(text)
    churn = {str(k): [k] * (k % 9) for k in range(i % 700, i % 700 + 600)}
    for k in list(churn)[::2]:
        del churn[k]
    kept[i % 200].append(churn)
    size += len(','.join(sorted(churn)).split(','))
print(size)
