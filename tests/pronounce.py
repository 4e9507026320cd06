"""pronounce.py FOLDER -- for pronounce.sh: the weights of a small network as .npz files, right and wrong, and what it makes of words, by
its formulas in plain Python."""
import math, random, struct, sys, zipfile

E, H, STEPS, END = 5, 11, 20, 3
rng = random.Random(7)
PHONEMES = open(__file__.replace("tests/pronounce.py", "examples/pronounce.c")).read().split("phoneme[N_PHONEMES] = {")[1].split("};")[0]
PHONEMES = [p.strip().strip('"') for p in PHONEMES.replace("\n", " ").split(",") if p.strip()]


def matrix(rows, columns, size):
    return [[struct.unpack("<f", struct.pack("<f", rng.uniform(-size, size)))[0] for _ in range(columns)] for _ in range(rows)]


def gru(x, h, w, r, bw, br):
    """One step: r, z, n; the reset gate behind the recurrent product."""
    a = [sum(p * q for p, q in zip(row, x)) + b[0] for row, b in zip(w, bw)]
    c = [sum(p * q for p, q in zip(row, h)) + b[0] for row, b in zip(r, br)]
    sigmoid = lambda v: 1 / (1 + math.exp(-v))
    new = []
    for i in range(H):
        reset, update = sigmoid(a[i] + c[i]), sigmoid(a[H + i] + c[H + i])
        n = math.tanh(a[2 * H + i] + reset * c[2 * H + i])
        new.append((1 - update) * n + update * h[i])
    return new


def spoken(m, word):
    h = [0.0] * H
    for letter in [ord(c) - ord("a") + 3 if "a" <= c <= "z" else 1 for c in word] + [2]:
        h = gru(m["enc_emb"][letter], h, *(m["enc_" + k] for k in ("w_ih", "w_hh", "b_ih", "b_hh")))
    last, said, margin = 2, [], math.inf
    for _ in range(STEPS):
        h = gru(m["dec_emb"][last], h, *(m["dec_" + k] for k in ("w_ih", "w_hh", "b_ih", "b_hh")))
        scores = [sum(p * q for p, q in zip(row, h)) + b[0] for row, b in zip(m["fc_w"], m["fc_b"])]
        last = scores.index(max(scores))
        margin = min(margin, max(scores) - sorted(scores)[-2])
        if last == END:
            break
        said.append(PHONEMES[last])
    return said, margin


def npy(rows, vector, code="<f4"):
    dims = f"({len(rows)},)" if vector else f"({len(rows)}, {len(rows[0])})"
    header = f"{{'descr': '{code}', 'fortran_order': False, 'shape': {dims}, }}"
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    kind = "f" if code == "<f4" else "d"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + b"".join(struct.pack("<" + kind, v) for r in rows for v in r)


def write(path, arrays, method=zipfile.ZIP_STORED, code="<f4"):
    with zipfile.ZipFile(path, "w", method) as z:
        for name, rows in arrays.items():
            z.writestr(name + ".npy", npy(rows, "b_" in name or name == "fc_b", code))


folder = sys.argv[1] + "/"
model = {}
for part, rows in (("enc", 29), ("dec", 74)):
    model[part + "_emb"] = matrix(rows, E, 2)
    for name, dims in (("w_ih", (3 * H, E, 2)), ("w_hh", (3 * H, H, 1)), ("b_ih", (3 * H, 1, 0.3)), ("b_hh", (3 * H, 1, 0.3))):
        model[f"{part}_{name}"] = matrix(*dims)
# rows of one length, so that no phoneme is the best of all states
model["fc_w"], model["fc_b"] = [[math.copysign(1, v) for v in row] for row in matrix(74, H, 1)], matrix(74, 1, 0.1)
lines, heard = [], set()
while len(lines) < 40:                    # each is spoken in its own way; scores that are nearly equal may be ordered otherwise in float32
    word = "".join(rng.choice("abcdefghijklmnopqrstuvwxyz'") for _ in range(rng.randint(1, 47 if len(lines) < 3 else 12)))
    said, margin = spoken(model, word)
    if said and margin > 1e-3 and tuple(said) not in heard:
        heard.add(tuple(said))
        lines.append(" ".join([word] + said))
open(folder + "words", "w").write("\n".join(lines) + "\n")
open(folder + "wrong", "w").write("\n".join(lines[:-1] + [lines[-1] + " ZH"]) + "\n")
write(folder + "small.npz", model)
write(folder + "compressed.npz", model, zipfile.ZIP_DEFLATED)
write(folder + "doubles.npz", model, code="<f8")
write(folder + "dims.npz", {**model, "enc_b_hh": model["enc_b_hh"][1:]})
write(folder + "less.npz", {k: v for k, v in model.items() if k != "fc_b"})
whole = open(folder + "small.npz", "rb").read()
open(folder + "cut.npz", "wb").write(whole[:-30])
entry = whole.index(b"PK\1\2")
open(folder + "offset.npz", "wb").write(whole[:entry + 42] + b"\xff\xff\xff\x7f" + whole[entry + 46:])
