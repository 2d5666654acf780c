#!/usr/bin/env python3
"""Checks an exported journal; written from docs/journal-format.md alone. Needs `cryptography` from PyPI.

verify_journal.py EXPORT [--key VKEY]… [--checkpoint FILE]… [--receipt FILE]…
Exit status 0: clean. 1: not clean, and the first fault is printed. 2: wrong usage.
"""
import argparse, base64, hashlib, json, re, sys
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

def need(holds, what):
    if not holds:
        raise ValueError(what)

def H(*parts):
    return hashlib.sha256(b"".join(parts)).digest()

def F(*fields):
    return H(*(len(field).to_bytes(8, "big") + field for field in fields))

def unhex(text, size=32):
    need(re.fullmatch("[0-9a-f]{%d}" % (2 * size), text), "expected %d bytes in hex" % size)
    return bytes.fromhex(text)

def unbase64(text):
    data = base64.b64decode(text, validate=True)
    need(base64.b64encode(data).decode() == text, "not canonical base64")
    return data

def unique(pairs):
    need(len(dict(pairs)) == len(pairs), "a key occurs twice")
    return dict(pairs)

def take(value, **types):
    """Returns the values of an object that has exactly these fields, in this order."""
    need(type(value) is dict and list(value) == list(types), "expected the fields " + ", ".join(types))
    for found, kind in zip(value.values(), types.values()):
        need(kind is None or type(found) is kind and (kind is not int or 0 <= found < 1 << 64), "a field has the wrong type")
    return value.values()

def parse_key(vkey):
    name, key_id, key = vkey.split("+", 2)
    data = unbase64(key)
    need(data[:1] == b"\1" and key_id == H(name.encode(), b"\n", data)[:4].hex(), "not a key: " + vkey)
    return name, bytes.fromhex(key_id), Ed25519PublicKey.from_public_bytes(data[1:])

def open_checkpoint(note, origin, keys):
    text, _, signatures = note.rpartition("\n\n")
    text, signed = text + "\n", False
    need(signatures.endswith("\n") and not re.search("[\0-\x09\x0b-\x1f]", text), "not a signed note")
    for line in signatures[:-1].split("\n"):
        signer, data = re.fullmatch("\u2014 ([^\\s+]+) ([A-Za-z0-9+/=]{8,})", line).groups()
        data = unbase64(data)
        for name, key_id, key in keys:
            if (name, key_id) == (signer, data[:4]):
                key.verify(data[4:], text.encode())
                signed = True
    need(signed, "no known key has signed the checkpoint")
    ledger, size, root, *extensions = text[:-1].split("\n")
    need(ledger == origin and all(extensions) and re.fullmatch("0|[1-9][0-9]{0,18}", size), "not a checkpoint of this ledger")
    return int(size), unbase64(root)

def join(left, right):
    return H(b"\1", left, right)

def append(peaks, leaf):
    """Adds a leaf to the complete subtrees, (height, hash) each, the largest first."""
    peaks.append((0, leaf))
    while len(peaks) > 1 and peaks[-1][0] == peaks[-2][0]:
        (height, left), (_, right) = peaks[-2:]
        peaks[-2:] = [(height + 1, join(left, right))]

def root_of(peaks):
    root = peaks[-1][1] if peaks else H()
    for _, left in reversed(peaks[:-1]):
        root = join(left, root)
    return root

def split(size):
    return 1 << (size - 1).bit_length() - 1

def included(at, size, path, leaf):
    """Returns the root that the path leads to."""
    if size == 1:
        need(not path, "the proof is too long")
        return leaf
    *path, sibling = path
    if at < split(size):
        return join(included(at, split(size), path, leaf), sibling)
    return join(sibling, included(at - split(size), size - split(size), path, leaf))

def grown(old, size, path, known):
    """Returns the old and the new root that the path leads to; known is the old one where it begins the path."""
    if old == size:
        root, = [known] if known else path
        need(not known or not path, "the proof is too long")
        return root, root
    *path, sibling = path
    if old <= split(size):
        before, after = grown(old, split(size), path, known)
        return before, join(after, sibling)
    before, after = grown(old - split(size), size - split(size), path, None)
    return join(sibling, before), join(sibling, after)

def is_consistent(old, old_root, size, root, path):
    if old == 0:
        return not path and old_root == H() and (size > 0 or root == H())
    return old <= size and grown(old, size, path, old_root) == (old_root, root)

def commitments(value):
    if type(value) is dict and list(value) == ["payload"]:
        return [value["payload"]]
    children = value.values() if type(value) is dict else value if type(value) is list else []
    return [found for child in children for found in commitments(child)]

class Verifier:
    def __init__(self, trusted, notes, receipts):
        self.trusted, self.notes, self.receipts = trusted, notes, receipts
        self.tenant, self.heads, self.peaks, self.leaf, self.tail = None, {}, [], 0, False
        self.last, self.roots, self.entries, self.gone, self.erased, self.protected = None, {}, 0, 0, 0, 0

    def line(self, line):
        self.place, value = "", json.loads(line.decode(), object_pairs_hook=unique)
        canonical = json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode() == line
        (kind, body), = value.items()
        known = kind in ("header", "entry", "removed", "checkpoint") and body.get("proof", {}) is not None
        need(canonical and known, "not written the one way a line is written")
        need((self.tenant is None) == (kind == "header"), "the header must be the first line and no other")
        getattr(self, kind)(body)

    def header(self, body):
        form, scope, tenant, self.origin, keys = take(body, format=str, scope=str, tenant=str, origin=str, keys=list)
        need(form == "rutter-export/1" and scope in ("ledger", "executions"), "unknown format")
        need(not self.trusted or set(keys) <= set(self.trusted), "a key of the export is not one you trust")
        trusted, keys = [parse_key(key) for key in self.trusted], [parse_key(key) for key in keys]
        self.keys, self.whole = trusted or keys, scope == "ledger"
        self.kept = [open_checkpoint(note, self.origin, trusted) for note in self.notes]
        need(all(receipt["tenant"] == tenant for receipt in self.receipts), "the receipt is of another tenant")
        self.tenant = tenant
        if self.whole:
            self.compare(0, H())

    def entry(self, body):
        proof = body.pop("proof") if list(body)[-1] == "proof" else None
        execution, seq, leaf, prev, hashed, text, payloads = take(
            body, execution=str, seq=int, leaf=None, prev=str, hash=str, bytes=str, payloads=list)
        self.place = "entry %d of %s: " % (seq, execution)
        prev, hashed = unhex(prev), unhex(hashed)
        need(H(b"rutter/entry/v1", prev, text.encode()) == hashed, "its bytes are not the ones that were hashed")
        need(text.startswith('{"v":1,'), "its format version is not known")
        _, *says, at, actor, event = take(json.loads(text, object_pairs_hook=unique), v=int, tenant=str,
                                          execution=str, seq=int, at=None, actor=dict, event=dict)
        need(says == [self.tenant, execution, seq], "it is another entry than the line says")
        first = F(b"rutter/journal/v1", self.tenant.encode(), execution.encode())
        last_seq, last_hash = self.heads.get(execution, (0, first))
        need(seq == last_seq + 1, "expected entry %d" % (last_seq + 1))
        need(prev == last_hash, "it does not follow from the entry before it")
        self.heads[execution] = seq, hashed
        need(sorted(commitments(event)) == sorted(map(self.payload, payloads)), "other payloads than it commits to")
        self.placed(leaf, H(b"\0", hashed), proof)
        for receipt in self.receipts:
            same = (receipt["execution"], receipt["seq"]) == (execution, seq)
            need(not same or receipt["hash"] == hashed.hex(), "it is not the entry of the receipt")
        self.entries += 1

    def removed(self, body):
        leaf, hashed = take(body, leaf=int, hash=str)
        need(self.whole, "only a whole ledger has removed entries")
        self.placed(leaf, H(b"\0", unhex(hashed)), None)
        self.gone += 1

    def payload(self, line):
        (kind, body), = line.items()
        if kind == "erased":
            self.erased += 1
            return unhex(*take(body, commitment=str)).hex()
        commitment, salt, text = take(take(line, kept=dict) and body, commitment=str, salt=str, bytes=str)
        need(F(b"rutter/payload/v1", unhex(salt, 16), text.encode()) == unhex(commitment), "a payload is not what it committed to")
        return commitment

    def placed(self, leaf, hashed, proof):
        if leaf is None:
            self.tail = True
            return need(proof is None, "an entry without a place has no proof")
        take({"leaf": leaf}, leaf=int)
        in_order = leaf == self.leaf if self.whole else leaf >= self.leaf
        need(in_order and not self.tail, "it is not in the order of the ledger")
        self.leaf = leaf + 1
        if self.whole:
            need(proof is None, "a whole ledger has no inclusion proofs")
            append(self.peaks, hashed)
            if any(size == self.leaf for size, _ in self.kept):
                self.compare(self.leaf, root_of(self.peaks))
        else:
            size, path = take(proof, size=int, path=list)
            holds = leaf < size and included(leaf, size, [unhex(node) for node in path], hashed) == self.roots.get(size)
            need(holds, "its inclusion proof does not hold")
            self.protected += 1

    def checkpoint(self, body):
        note, path = take(body, note=str, consistency=list)
        size, root = open_checkpoint(note, self.origin, self.keys)
        if self.whole:
            need((size, root) == (self.leaf, root_of(self.peaks)), "the entries before it are not the ones that were signed")
            self.protected = size
        else:
            need(self.entries == 0, "a checkpoint behind an entry")
            self.compare(size, root)
        holds = is_consistent(*self.last, size, root, [unhex(node) for node in path]) if self.last else not path
        need(holds, "it is not proven to continue the checkpoint before it")
        self.last = size, root
        self.roots[size] = root

    def compare(self, size, root):
        need(all(kept == (size, root) for kept in self.kept if kept[0] == size), "not the entries of the checkpoint kept elsewhere")
        self.kept = [kept for kept in self.kept if kept[0] != size]

    def finish(self):
        self.place = ""
        need(self.tenant is not None, "there is no header")
        need(not self.kept, "the checkpoint kept elsewhere has nothing to be compared with: the export was cut")
        for receipt in self.receipts:
            need(0 < receipt["seq"] <= self.heads.get(receipt["execution"], (0,))[0], "the entry of the receipt is not there")
        level = "V0" if not self.trusted or not self.last else "V2" if self.notes or self.receipts else "V1"
        unprotected = self.entries + self.gone - (self.protected if level != "V0" else 0)
        return "%s: %d entries, %d unprotected, %d payloads erased" % (level, self.entries, unprotected, self.erased)

def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("export")
    for name in ("--key", "--checkpoint", "--receipt"):
        parser.add_argument(name, action="append", default=[])
    args = parser.parse_args()
    read = lambda path: open(path, encoding="utf-8", newline="").read()
    receipts = [json.loads(read(path)) for path in args.receipt]
    verifier, number = Verifier(args.key, [read(path) for path in args.checkpoint], receipts), 0
    verifier.place = ""
    try:
        for number, line in enumerate(open(args.export, "rb"), 1):
            need(line.endswith(b"\n"), "the line has no end")
            verifier.line(line[:-1])
        print(verifier.finish())
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError, InvalidSignature) as fault:
        print("line %d: %s%s" % (number, verifier.place, str(fault) or type(fault).__name__))
        sys.exit(1)

if __name__ == "__main__":
    main()
