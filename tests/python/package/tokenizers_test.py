"""The program's tokenizer against Hugging Face's library: a tokenizer.json of each of the forms that people's networks
come with, and texts on which they could differ."""

import json
import pathlib
import random
import subprocess

import pytest
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

from launch import PROGRAM

DOCS = pathlib.Path(__file__).parents[3] / "docs"

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace("{1,3}", "")
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
O200K = (rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*"
         r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
PUNCTUATION = (r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*"
               r"|\s*[\r\n]+|\s+(?!\S)|\s+")


def split(pattern, behavior="isolated", invert=False):
    return pre_tokenizers.Split(Regex(pattern), behavior, invert)


def bytes_of_pieces(use_regex=False):
    return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=use_regex)


FORMS = {  # the steps, whether text is normalised, whether whole pieces need no merges
    "gpt2": ([bytes_of_pieces(True)], False, False),
    "pythia": ([bytes_of_pieces(True)], True, False),
    "smollm": ([pre_tokenizers.Digits(individual_digits=True), bytes_of_pieces(True)], False, False),
    "runs of digits": ([pre_tokenizers.Digits(individual_digits=False), bytes_of_pieces(True)], False, False),
    "llama 3": ([split(LLAMA3), bytes_of_pieces()], False, True),
    "qwen2": ([split(QWEN2), bytes_of_pieces()], True, False),
    "o200k": ([split(O200K), bytes_of_pieces()], False, True),
    "deepseek": ([split(r"\p{N}{1,3}"), split("[一-龥぀-ゟ゠-ヿ]+"), split(PUNCTUATION), bytes_of_pieces()], False, False),
    "a text": ([pre_tokenizers.Split(".", "isolated"), split(r"\d+|^#+|[^\d]$"), bytes_of_pieces(True)], False, False),
    "dolma": ([split(QWEN2, "removed", True), bytes_of_pieces()], False, False),
    "letters alone": ([split(r"\p{L}+", "removed", True), split("[aeiou]"), bytes_of_pieces()], False, False),
    "none": ([bytes_of_pieces()], False, False),
}


def of_pairs(name, folder):
    """A tokenizer of that form, and its file in the folder. Any two bytes that stand side by side in a piece merge, in an order
    at random, so that the ids tell where a text was cut."""
    steps, composes, whole = FORMS[name]
    characters = sorted(pre_tokenizers.ByteLevel.alphabet())
    if name == "smollm":  # a vocabulary of text may lack bytes, which are left out
        characters = [character for character in characters if character not in "\u0100\u0101\u0102\u00c0\u00c1\u00f5\u0109\u010b"]
    pairs = [(left, right) for left in characters for right in characters]
    random.Random(4).shuffle(pairs)
    words = ["the", "\u0120the", "123", "'ll", "..."]  # that no merges make
    tokens = [*characters, *map("".join, pairs), *words]
    tokenizer = Tokenizer(models.BPE({token: id for id, token in enumerate(tokens)}, pairs, ignore_merges=whole))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(steps) if len(steps) > 1 else steps[0]
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFC()]) if composes else None
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<|endoftext|>", AddedToken("<|left|>", lstrip=True), AddedToken("<|right|>", rstrip=True),
                                  AddedToken("<|both|>", lstrip=True, rstrip=True)])
    tokenizer.add_tokens([AddedToken("<think>", normalized=False)])
    tokenizer.add_tokens([AddedToken(" " * count, normalized=True) for count in (24, 8, 3)])  # beside the vocabulary's
    tokenizer.save(str(folder / "tokenizer.json"))
    return tokenizer


MARK = "\u2581"  # a space


def replaced(*before):
    return normalizers.Sequence([*before, normalizers.Replace(" ", MARK)])


def metaspace(scheme, cuts):
    return pre_tokenizers.Metaspace(prepend_scheme=scheme, split=cuts)


CHARACTERS = {  # the normalizer, the pre-tokenizer, whether a merge goes into a space
    "llama 2": (replaced(normalizers.Prepend(MARK)), None, False),
    "llama 2 across words": (replaced(normalizers.Prepend(MARK)), None, True),
    "nothing in front": (normalizers.Replace(" ", MARK), None, False),
    "metaspace": (None, metaspace("first", False), False),
    "metaspace across words": (None, metaspace("first", False), True),
    "metaspace of every part": (None, metaspace("always", False), True),
    "metaspace that cuts": (None, metaspace("always", True), True),
    "metaspace with nothing in front": (None, metaspace("never", True), False),
}


def of_characters(name, folder, normalized=False):
    """A tokenizer of that form, of characters with bytes for others, as of_pairs()."""
    normalizer, step, crosses = CHARACTERS[name]
    characters = [MARK, *"abcdefghijklmnopqrstuvwxyzABCHS0123456789.,'<>|=/\n\u00e9\u00df\u0301\u4e00\u6f22\u3042\U0001f44d"]
    pairs = [(left, right) for left in characters for right in characters if right != MARK or left == MARK or crosses]
    random.Random(6).shuffle(pairs)
    pairs += [(MARK + MARK, MARK + MARK), (MARK + "t", "he"), (MARK + "the", MARK + "a" if crosses else "re")]
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *characters, *map("".join, pairs)]
    tokenizer = Tokenizer(models.BPE({token: id for id, token in enumerate(tokens)}, pairs, unk_token="<unk>", fuse_unk=True,
                                     byte_fallback=True))
    tokenizer.normalizer, tokenizer.decoder = normalizer, decoders.Sequence(
        [decoders.Replace(MARK, " "), decoders.ByteFallback(), decoders.Fuse(),
         *([] if name.endswith("in front") else [decoders.Strip(" ", 1, 0)])])
    if step is not None:
        tokenizer.pre_tokenizer = step
    tokenizer.add_special_tokens([AddedToken(text, normalized=normalized) for text in ("<unk>", "<s>", "</s>")])
    tokenizer.add_tokens([AddedToken("<think>", normalized=False), AddedToken("<|both|>", lstrip=True, rstrip=True, normalized=False)])
    tokenizer.save(str(folder / "tokenizer.json"))
    return tokenizer


def program(folder, data, *flags):
    (folder / "text").write_bytes(data)
    return subprocess.run([PROGRAM, "tokenize", "--tokenizer", folder, folder / "text", *flags], capture_output=True, check=False)


def ids_of(folder, text, *flags):
    done = program(folder, text.encode("utf-8"), "--json", *flags)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["ids"]


ALPHABETS = [
    "abcXYZ", "  \t\n\r\v\f", "0123456789", ".,;:!?'\"()[]{}<>/\\|@#$%^&*-_=+~`", "\u00e9\u00df\u017f\u0130\u01c5\u02b0\u00aa",
    "\u0301\u0308\u0323\u20dd\u0327", "\u00b2\u00bd\u2167\u0663\u0967\U0001d7d8", "\u00a0\u1680\u180e\u2000\u2009\u2028\u2029\u202f\u205f\u3000\u200b\ufeff\x85",
    "\u4e00\u6f22\u5b57\u3042\u30a2\u30fc\uac00\ud55c\u1100\u1161\u11a8", "\u05e9\u05dc\u0633\u0627\u0915\u094d\u0937", "\U0001f469\u200d\U0001f467\U0001f44d\U0001f3fd\ufe0f\U0001f1e9",
    "\u212b\u1e9b\u2126\u0958\u0344\ufb1d\u0340\u0341\u0374\u1f71",  # what composition changes
]
WORDS = ["it's", "I'VE", "We'Ll", "don't", " the", "the", "HTTPServer", "camelCase", "\r\n\r\n", "   ", "12345", "e\u0301", "<|end"]


def texts():
    random.seed(5)
    yield "".join(random.choice(random.choice([WORDS, *ALPHABETS])) for _ in range(3000)) + " \n "
    yield "".join(random.choice(random.choice([WORDS, *ALPHABETS])) for _ in range(3000)) + "\u3000"
    yield ("'\u017f it'\u017f I'\u017fx" + "a" * 5000 + "=" * 4000 + "x" + " " * 3000 + "x" + "\n" * 999 +
           (DOCS / "distributed.md").read_text(encoding="utf-8") + "".join(random.choice(WORDS) for _ in range(2000)) + "'ll")


def decoded(folder, ids):
    (folder / "ids").write_text(json.dumps(ids))
    return subprocess.run([PROGRAM, "tokenize", "--tokenizer", folder, folder / "ids", "--decode"], capture_output=True,
                          check=True).stdout


@pytest.mark.parametrize("name", FORMS)
def test_gives_the_ids_of_hugging_face(name, tmp_path):
    tokenizer = of_pairs(name, tmp_path)
    for text in texts():
        assert ids_of(tmp_path, text) == tokenizer.encode(text, add_special_tokens=False).ids, text[:200]
    text = next(texts())
    ids = tokenizer.encode(text, add_special_tokens=False).ids
    if name not in ("smollm", "letters alone"):
        assert decoded(tmp_path, ids).decode() == (tokenizer.normalizer.normalize_str(text) if tokenizer.normalizer else text)


def test_special_tokens_take_the_white_space_that_they_say(tmp_path):
    tokenizer = of_pairs("qwen2", tmp_path)
    for text in ["a     <|left|>", "    a <think>        b", "a <|left|> b", "a \u3000\n<|right|>\t\u2003b", "  <|both|>  ", "x<|both|><|left|> <|right|>", "<|endoftext|> <think> y",
                 " \t", "a  <|left|> <|left|>  <|both|> e\u0301<|endoftext|>", "<|left|", "e<think>\u0301"]:
        assert ids_of(tmp_path, text, "--special") == tokenizer.encode(text, add_special_tokens=False).ids, text


def test_malformed_bytes_come_back_as_they_are(tmp_path):
    of_pairs("qwen2", tmp_path)
    data = b"the \xff operator e\xcc\x81 \xe2\x82 12\xc0"
    ids = json.loads(program(tmp_path, data, "--json").stdout)["ids"]
    assert decoded(tmp_path, ids) == b"the \xff operator \xc3\xa9 \xe2\x82 12\xc0"


def changed(step):
    return {"type": "Sequence", "pretokenizers": [step, {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}]}


def split_by(pattern, **changes):
    return changed({"type": "Split", "pattern": pattern, "behavior": "Isolated", "invert": False, **changes})


SPACES = ["", " ", "the", f"{MARK}the {MARK}{MARK} a",
          "  the there  thea a\u00a0b \u3000 c\n the\n\nthe\t\x00\x7f\u2580\u2582 \U0001f469\u200d\U0001f467\u0301a \u0301" + "the" * 3000 +
          " " * 3000 + "a b" * 3000]


@pytest.mark.parametrize("name", CHARACTERS)
def test_gives_the_ids_of_hugging_face_with_characters(name, tmp_path):
    tokenizer = of_characters(name, tmp_path)
    for text in ["".join(texts()), *SPACES]:
        assert ids_of(tmp_path, text) == tokenizer.encode(text, add_special_tokens=False).ids, text[:200]
    for text in SPACES[-2:]:
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        assert decoded(tmp_path, ids).decode() == tokenizer.decode(ids, skip_special_tokens=False), text[:200]


@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize("name", CHARACTERS)
def test_added_tokens_stand_between_characters(name, normalized, tmp_path):
    tokenizer = of_characters(name, tmp_path, normalized)
    for text in ["<s>the<s> the</s><s> a  <s", " <s>  </s> ", f"a<unk><think>a  <think>a  <|both|>  the<s>{MARK}<s>{MARK}"]:
        assert ids_of(tmp_path, text, "--special") == tokenizer.encode(text, add_special_tokens=False).ids, text


def written(folder, vocab, merges, **parts):
    """A tokenizer of characters of that file; tokens of bytes come first."""
    tokens = [*(f"<0x{byte:02X}>" for byte in range(256)), MARK, *vocab]
    root = {"version": "1.0", "truncation": None, "padding": None, "pre_tokenizer": None, "post_processor": None, "decoder": None,
            "added_tokens": [], "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": MARK},
            "model": {"type": "BPE", "byte_fallback": True, "vocab": {token: id for id, token in enumerate(tokens)}, "merges": merges}, **parts}
    (folder / "tokenizer.json").write_text(json.dumps(root), encoding="utf-8")
    return Tokenizer.from_file(str(folder / "tokenizer.json"))


ALPHABET = sorted(pre_tokenizers.ByteLevel.alphabet())


def of_bytes(folder, tokens, merges=(), added_tokens=(), **model):
    """A tokenizer of bytes of that file."""
    step = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True, "trim_offsets": True}
    root = {"version": "1.0", "truncation": None, "padding": None, "pre_tokenizer": step, "post_processor": None, "decoder": step,
            "added_tokens": list(added_tokens), "normalizer": None,
            "model": {"type": "BPE", "vocab": {token: id for id, token in enumerate(tokens)}, "merges": list(merges), **model}}
    (folder / "tokenizer.json").write_text(json.dumps(root), encoding="utf-8")
    return Tokenizer.from_file(str(folder / "tokenizer.json"))


def test_a_byte_without_a_token_is_unknown(tmp_path):
    """As in a vocabulary that was trained on a text and has the bytes of that text alone."""
    tokenizer = of_bytes(tmp_path, ["<unk>", *"abc\u0120", "ab"], [["a", "b"]], unk_token="<unk>")
    for text in ["abzzc a\n\nabz", "zab", "\u00e9"]:
        ids = tokenizer.encode(text).ids
        assert ids_of(tmp_path, text) == ids
        assert decoded(tmp_path, ids).decode() == tokenizer.decode(ids, skip_special_tokens=False)
    of_bytes(tmp_path, ["<unk>", *"abc"], unk_token="<unk>", fuse_unk=True)
    done = program(tmp_path, b"a")
    assert done.returncode == 2 and b"model/fuse_unk is true, expected false" in done.stderr
    of_bytes(tmp_path, "abc", unk_token="<unk>")
    done = program(tmp_path, b"a")
    assert done.returncode == 2 and b'model/unk_token is "<unk>", expected a token of model.vocab' in done.stderr


def added(id, content, **flags):
    return {"id": id, "content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": False, **flags}


def test_merges_are_done_one_at_a_time(tmp_path):
    """Where a merge makes a pair that another of lower rank takes, as in a vocabulary that was extended."""
    tokenizer = written(tmp_path, ["a", "b", "ab", "aba"], [["ab", "a"], ["a", "b"]])
    for text in ["abab", "ababab", "aabab"]:
        assert ids_of(tmp_path, text) == tokenizer.encode(text).ids


def test_tokens_of_bytes_merge_and_may_be_added(tmp_path):
    tokenizer = written(tmp_path, ["<0xC3><0xA9>", "a", MARK * 2], [["<0xC3>", "<0xA9>"], [MARK, MARK]],
                        added_tokens=[added(0x0A, "<0x0A>"), added(259, MARK * 2)])
    for text in ["a\u00e9  a\n", f"{MARK}{MARK}a", "<0x0A>"]:
        assert ids_of(tmp_path, text) == tokenizer.encode(text).ids


def test_of_two_entries_for_an_added_token_the_later_counts(tmp_path):
    entries = [added(256, "<x>"), added(257, "<y>"), added(256, "<x>", lstrip=True), added(257, "<y>", rstrip=True), added(257, "<y>")]
    for tokens in (entries, entries[::-1]):
        tokenizer = of_bytes(tmp_path, [*ALPHABET, "<x>", "<y>"], added_tokens=tokens, dropout=0.0)
        assert ids_of(tmp_path, "a  <x>  <y>  b") == tokenizer.encode("a  <x>  <y>  b").ids


IDS = {  # tokens behind the bytes, added tokens, and what is said where their ids are not Hugging Face's
    "in the order of the file": ([], [added(256, "<x>"), added(257, "<y>")], None),
    "of the vocabulary": (["<x>"], [added(257, "<y>"), added(256, "<x>"), added(258, "<z>")], None),
    "twice": ([], [added(256, "<x>"), added(256, "<x>", lstrip=True), added(257, "<y>")], None),
    "another order": ([], [added(257, "<x>"), added(256, "<y>")], b'the id of the added token "<x>" is 257, expected 256, which'),
    "a gap": ([], [added(256, "<x>"), added(260, "<y>")], b'the id of the added token "<y>" is 260, expected 257, which'),
    "another than the vocabulary's": (["<x>"], [added(257, "<x>")], b'the id of the added token "<x>" is 257, expected 256, which'),
}


@pytest.mark.parametrize("case", IDS)
def test_added_tokens_have_the_ids_of_hugging_face(case, tmp_path):
    more, tokens, complaint = IDS[case]
    tokenizer = of_bytes(tmp_path, [*ALPHABET, *more], added_tokens=tokens)
    done = program(tmp_path, b"a<x>b<y> <z>", "--json")
    if complaint:
        assert any(tokenizer.token_to_id(token["content"]) != token["id"] for token in tokens)
        assert done.returncode == 2 and complaint in done.stderr and done.stderr.count(b"\n") == 1, done.stderr
    else:
        assert json.loads(done.stdout)["ids"] == tokenizer.encode("a<x>b<y> <z>").ids, done.stderr


@pytest.mark.parametrize("normalized", [False, True])
def test_added_tokens_of_spaces_are_found_where_hugging_face_finds_them(normalized, tmp_path):
    tokenizer = written(tmp_path, ["a", "b", "x"], [], added_tokens=[
        added(260, "a b", normalized=normalized), added(261, f"b{MARK}a", normalized=normalized), added(262, "<k>", rstrip=not normalized),
        added(263, "  ")])
    for text in [f"xa{MARK}bx", "xa bx", f"xb{MARK}ax", "xb ax", "a<k>  b", "a<k>   b", "<k>  <k> x"]:
        assert ids_of(tmp_path, text) == tokenizer.encode(text).ids, text


def test_a_normalized_token_that_ends_a_text_ends_it(tmp_path):
    """It is found behind the space that every part gets; its name is its own."""
    prepend = {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": MARK}, {"type": "Replace", "pattern": {"String": " "}, "content": MARK}]}
    tokenizer = written(tmp_path, ["</s>", "a"], [], normalizer=prepend, added_tokens=[added(257, "</s>", normalized=True, special=True)])
    for text in ["a</s> a </s>", "</s>"]:
        assert ids_of(tmp_path, text, "--special") == tokenizer.encode(text).ids


def test_bytes_of_no_character_are_tokens_of_bytes(tmp_path):
    of_characters("llama 2", tmp_path)
    data = b"the \xff a\xe2\x96 \xc0"
    ids = json.loads(program(tmp_path, data, "--json").stdout)["ids"]
    assert 3 + 0xff in ids and 3 + 0xc0 in ids and decoded(tmp_path, ids) == data


REFUSED = {
    "a metaspace": ({"type": "Metaspace"}, 'pre_tokenizer/type is "Metaspace", expected "ByteLevel"'),
    "bytes too early": (changed({"type": "ByteLevel"}), 'pretokenizers/0/type is "ByteLevel", expected "Split" or "Digits"'),
    "no steps": ({"type": "Sequence", "pretokenizers": []}, "has no step in pre_tokenizer, expected ByteLevel"),
    "what is removed": (split_by({"String": " "}, behavior="Removed"), "/invert is false, expected true"),
    "what is merged": (split_by({"String": " "}, behavior="MergedWithNext"), 'expected "Isolated" or "Removed"'),
    "inverted": (split_by({"String": " "}, invert=True), "/invert is true, expected false"),
    "no pattern": (split_by({}), "/pattern is {}, expected an object with Regex or String"),
    "an empty text": (split_by({"String": ""}), "/pattern: expected a text, found an empty one"),
    "an empty match": (split_by({"Regex": "a*"}), "/pattern: expected a pattern that matches no empty text"),
    "an empty lookahead": (split_by({"Regex": "(?=A)"}), "/pattern: expected a pattern that matches no empty text"),
    "another escape": (split_by({"Regex": "a\\w"}), "/pattern: expected a pattern without \\w, found it at byte 1"),
    "a class in a class": (split_by({"Regex": "[a[b]]"}), "expected a pattern without [, found it at byte 2"),
    "an intersection": (split_by({"Regex": "[a&&b]"}), "expected a pattern without &&, found it at byte 2"),
    "a script": (split_by({"Regex": "\\p{Han}"}), "expected a pattern without \\p{Han}"),
    "a verb": (split_by({"Regex": "(*COMMIT)a"}), "expected a pattern without (*C"),
    "a name": (split_by({"Regex": "(?<n>a)"}), "expected a pattern without (?<"),
    "a possessive count": (split_by({"Regex": "a{1,3}+"}), "expected a pattern without {"),
    "a lazy count": (split_by({"Regex": "a{2}?b"}), "expected a pattern without {, found it at byte 1"),
    "another letter": (split_by({"Regex": "\\\u00e9"}), "expected a pattern without \\\u00e9, found"),
    "half a pattern": (split_by({"Regex": "(a"}), "expected a regular expression: missing closing parenthesis"),
}


NEVER = {"normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": MARK}}
REFUSED_WITH_CHARACTERS = {  # what the file says beside its model, and tokens without an id that its vocabulary lacks and has
    "neither": ({}, (), (), "normalizer has 0 and pre_tokenizer 0 steps, expected with byte_fallback a Replace"),
    "both": ({**NEVER, "pre_tokenizer": {"type": "Metaspace", "replacement": MARK}}, (), (), "normalizer has 1 and pre_tokenizer 1 steps"),
    "another mark": ({"pre_tokenizer": {"type": "Metaspace", "replacement": "_"}}, (), (), 'replacement is "_", expected "\u2581"'),
    "another scheme": ({"pre_tokenizer": {"type": "Metaspace", "replacement": MARK, "prepend_scheme": "last"}}, (), (),
                       'prepend_scheme is "last", expected "always", "first" or "never"'),
    "another replacement": ({"normalizer": {"type": "Replace", "pattern": {"String": "a"}, "content": "b"}}, (), (),
                            'normalizer/pattern is {"String":"a"}, expected {"String":" "}'),
    "bytes": ({"pre_tokenizer": {"type": "ByteLevel"}}, (), (), 'pre_tokenizer/type is "ByteLevel", expected "Metaspace"'),
    "a byte less": (NEVER, ("<0x7F>",), (), "no token for the byte 0x7f"),
    "no space": (NEVER, (MARK,), (), "no token for U+2581"),
    "a real space": (NEVER, (), ("a b",), 'token "a b" has a space, expected U+2581 for one'),
    "a prefix of nothing": ({**NEVER, "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<x>"}}]}},
                            (), (), 'post_processor has no special token "<x>"'),
    "a prefix beyond the tokens": ({**NEVER, "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<x>"}}],
                                                                "special_tokens": {"<x>": {"id": "<x>", "ids": [257]}}}},
                                   (), (), "post_processor has the id 257, expected 0 to 256"),
    "white space": ({"normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": MARK}, NEVER["normalizer"]]},
                     "added_tokens": [{"id": 999, "content": "<s>", "normalized": True, "lstrip": True}]}, (), (),
                    "/lstrip is true, expected false"),
}


@pytest.mark.parametrize("case", REFUSED_WITH_CHARACTERS)
def test_another_form_of_characters_is_refused_in_one_line(case, tmp_path):
    root, lacking, more, complaint = REFUSED_WITH_CHARACTERS[case]
    tokens = [token for token in (*(f"<0x{byte:02X}>" for byte in range(256)), MARK, *more) if token not in lacking]
    root = {"model": {"type": "BPE", "byte_fallback": True, "vocab": {token: id for id, token in enumerate(tokens)}, "merges": []}, **root}
    (tmp_path / "tokenizer.json").write_text(json.dumps(root), encoding="utf-8")
    done = program(tmp_path, b"a")
    assert done.returncode == 2 and complaint in done.stderr.decode() and done.stderr.count(b"\n") == 1, done.stderr


@pytest.mark.parametrize("case", REFUSED)
def test_another_way_to_cut_is_refused_in_one_line(case, tmp_path):
    step, complaint = REFUSED[case]
    characters = sorted(pre_tokenizers.ByteLevel.alphabet())
    model = {"type": "BPE", "vocab": {character: id for id, character in enumerate(characters)}, "merges": []}
    (tmp_path / "tokenizer.json").write_text(json.dumps({"pre_tokenizer": step, "model": model}), encoding="utf-8")
    done = program(tmp_path, b"a")
    assert done.returncode == 2 and complaint in done.stderr.decode() and done.stderr.count(b"\n") == 1, done.stderr
