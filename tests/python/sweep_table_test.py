#!/usr/bin/env python3
"""The tables of collected runs (scripts/sweep_table) against their numbers, computed once more."""

import importlib.machinery
import importlib.util
import json
import math
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True  # none beside the script
ROOT = pathlib.Path(__file__).resolve().parents[2]
RESULTS = ROOT / "docs" / "results"
PAGES = [page for page in RESULTS.glob("*.md") if "<!-- sweep_table " in page.read_text()]


def sweep_table(*arguments):
    return subprocess.run([sys.executable, ROOT / "scripts" / "sweep_table", *arguments], capture_output=True, text=True)


def script_as_module():
    loader = importlib.machinery.SourceFileLoader("sweep_table", str(ROOT / "scripts" / "sweep_table"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("sweep_table", loader))
    loader.exec_module(module)
    return module


def run(variant, seed, loss, on, wire, status="done"):
    messages = {"activations": {"raw": 640, "wire": wire, "error": 0.25, "mean_error": -0.125},
                "gradients": {"raw": 640, "wire": 640, "error": 0, "mean_error": 0}}
    epoch = {"train_loss": loss, "test": {"on": {"accuracy": on}, "off": {"accuracy": on - 1}},
             "boundaries": {"a": messages, "b": messages}}
    return {"variant": variant, "seed": seed, "status": status, "config": {}, "epochs": [epoch]}


def file_of(runs, folder):
    file = pathlib.Path(folder) / "runs.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in [{"config": {}}, *runs]))
    return file


class WrongInput(unittest.TestCase):

    def expect_one_line(self, script, arguments, line):
        result = subprocess.run([sys.executable, ROOT / "scripts" / script, *arguments], capture_output=True, text=True)
        self.assertEqual((result.returncode, result.stderr), (2, f"{script}: {line}\n"))

    def test_a_missing_file_is_named_in_one_line(self):
        with tempfile.TemporaryDirectory() as folder:
            missing = f"{folder}/none.jsonl"
            gone = ": No such file or directory"
            self.expect_one_line("sweep_table", [missing], missing + gone)
            self.expect_one_line("sweep_table", ["--check", f"{folder}/none.md"], f"{folder}/none.md{gone}")
            self.expect_one_line("collect_runs", [folder, missing], f"{folder}/sweep.json{gone}")
            sweep = {"runs": [{"variant": "a", "seed": 0, "folder": "a", "status": "done", "config_hash": "1"}]}
            pathlib.Path(folder, "sweep.json").write_text(json.dumps(sweep))
            self.expect_one_line("collect_runs", [folder, missing], f"{folder}/a/status.json{gone}")
            self.assertFalse(pathlib.Path(missing).exists())

    def test_a_file_of_another_kind_is_named_in_one_line(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "x.jsonl")
            file.write_text('{"epoch": 0}\n{"epoch": 1}\n')
            expected = "what the runs share in the first line, and a run that scripts/collect_runs has collected in each other"
            self.expect_one_line("sweep_table", [file], f"{file}: expected {expected}")
            self.expect_one_line("collect_runs", [folder, file], f"{file}: expected lines that this script has written")
            one = json.dumps(run("one", 0, 1.0, 60.0, 640)) + "\n"
            for text in ("", "{}\n", one + one, "{}\n3\n"):  # the third has lost its first line
                file.write_text(text)
                self.expect_one_line("sweep_table", [file], f"{file}: expected {expected}")
            file.write_text("{}\nx\n")
            self.expect_one_line("sweep_table", [file], f"{file}:2: Expecting value: line 1 column 1 (char 0)")
            pathlib.Path(folder, "sweep.json").write_text('{"runs": []}')
            self.expect_one_line("collect_runs", [folder, f"{folder}/new.jsonl"], f"{folder}: no run is done")


    def test_a_run_that_cannot_be_in_a_table_is_named_in_one_line(self):
        one = run("one", 0, 1.0, 60.0, 640)
        unscored = run("one", 1, 1.0, 60.0, 640)
        unscored["epochs"][-1]["test"] = {}
        for second, wrong in ((one, "one, seed 0: expected each run once"),
                              (unscored, "one, seed 1: expected test scores of the last epoch, found none"),
                              (unscored | {"epochs": []}, "one, seed 1: expected test scores of the last epoch, found none")):
            with tempfile.TemporaryDirectory() as folder:
                file = file_of([one, second], folder)
                self.expect_one_line("sweep_table", [file], f"{file}: {wrong}")

    def test_a_mark_that_is_none_is_named_in_one_line(self):
        either = ("<!-- sweep_table FILE.jsonl -->, <!-- best_table FILE.jsonl... FACTOR... --> or "
                  "<!-- crossed_table FILE.jsonl ROW... x COLUMN... -->")
        with tempfile.TemporaryDirectory() as folder:
            file_of([run("none", 0, 1.0, 60.0, 640)], folder)
            page = pathlib.Path(folder, "page.md")
            for mark in ("<!-- sweep_table runs.jsonl -->", "<!-- best_table  runs.jsonl 4 -->"):
                page.write_text(f"{mark}\n| a |\n")  # without an empty line, so that the table stays as it is
                self.expect_one_line("sweep_table", ["--check", page], f"{page}: expected {either} before an empty line, found {mark}")
            for mark in ("<!-- crossed_table runs.jsonl fw2 x -->", "<!-- crossed_table runs.jsonl fw2 tensor -->"):
                page.write_text(f"{mark}\n\n")
                self.expect_one_line("sweep_table", ["--check", page], f"{page}: expected {either} before an empty line, found {mark}")
            page.write_text("<!-- best_table runs.jsonl 4x -->\n\n")
            self.expect_one_line("sweep_table", ["--check", page], f"{page}: expected how many times fewer bytes, found 4x")

    def test_runs_that_a_table_lacks_are_named_in_one_line(self):
        with tempfile.TemporaryDirectory() as folder:
            file = file_of([run("topk10", 0, 1.0, 60.0, 640)], folder)
            page = pathlib.Path(folder, "page.md")
            for mark, missing in (("sweep_table runs.jsonl quant*", "runs of quant*"), ("best_table runs.jsonl 4", "runs of none to compare with"),
                                  ("crossed_table runs.jsonl fw2 x tensor", "runs of none to compare with")):
                page.write_text(f"<!-- {mark} -->\n\n")
                self.expect_one_line("sweep_table", ["--check", page], f"{file}: expected {missing}, found none")


class CollectRuns(unittest.TestCase):
    PAPER = {"on": 92.5, "off": 93.0}

    def write_sweep(self, folder, *runs):
        """Each is of a seed: the status in sweep.json, and what is other in status.json or in the epoch."""
        entries = []
        for seed, (status, other) in enumerate(runs):
            entries.append({"variant": "quant", "seed": seed, "folder": f"quant-{seed}", "status": status,
                            "config_hash": f"hash-{seed}", "paper": self.PAPER})
            if other is None:
                continue
            sent = {"raw_bytes": 640, "wire_bytes": 160}
            epoch = {"epoch": 0, "train_loss": 1.5, "steps": 2, "seconds": 3.0, "test": {"on": {"accuracy": 50.0}},
                     "boundaries": [{"name": "a", "activations": sent, "gradients": sent}]} | other.pop("epoch", {})
            known = {"code_version": "1", "machine": "m", "status": status, "config_hash": f"hash-{seed}", "epochs": 1} | other
            own = pathlib.Path(folder, f"quant-{seed}")
            own.mkdir()
            begins_later = f'[compression]\nstart_from = "x"\nstart_epoch = {epoch["epoch"]}\n' if known.pop("begins_later", False) else ""
            (own / "config.toml").write_text(f'name = "x"\nseed = {seed}\n[data]\nroot = "/d"\nbatch_size = 4\n{begins_later}')
            (own / "status.json").write_text(json.dumps(known))
            (own / "metrics.jsonl").write_text(json.dumps(epoch) + "\n")
        pathlib.Path(folder, "sweep.json").write_text(json.dumps({"runs": entries}))

    def collect(self, folder):
        file = pathlib.Path(folder, "runs.jsonl")
        result = subprocess.run([sys.executable, ROOT / "scripts" / "collect_runs", folder, file], capture_output=True, text=True)
        self.assertEqual(result.returncode, 0, result.stderr)
        return [json.loads(line) for line in file.read_text().splitlines()], result.stderr

    def test_a_run_is_a_line_with_what_is_its_own(self):
        with tempfile.TemporaryDirectory() as folder:
            self.write_sweep(folder, ("done", {}), ("waiting", None))
            for _ in range(2):  # the second time it is replaced
                (shared, collected), said = self.collect(folder)
        self.assertEqual(said, "")
        self.assertEqual(shared, {"config": {"data.batch_size": 4}})
        self.assertEqual({key: collected[key] for key in ("variant", "seed", "status", "paper", "code_version", "config")},
                         {"variant": "quant", "seed": 0, "status": "done", "paper": self.PAPER, "code_version": "1", "config": {}})
        self.assertEqual(collected["epochs"][0]["boundaries"]["a"]["gradients"],
                         {"raw": 320, "wire": 80, "error": None, "gain": None, "mean_error": None})

    def test_what_was_not_finite_stays_null(self):
        with tempfile.TemporaryDirectory() as folder:
            scores = {"on": {"loss": 900.0, "perplexity": None}, "off": {"loss": None}}
            self.write_sweep(folder, ("diverged", {"epoch": {"train_loss": None, "test": scores}}))
            (_, collected), _ = self.collect(folder)
        self.assertEqual(collected["epochs"][0]["test"], scores)
        self.assertIsNone(collected["epochs"][0]["train_loss"])

    def test_a_folder_with_another_run_is_left_out(self):
        with tempfile.TemporaryDirectory() as folder:
            self.write_sweep(folder, ("done", {"config_hash": "other"}), ("done", {}), ("done", {"status": "running"}),
                             ("done", {"epochs": 2}), ("done", {"epochs": 2, "epoch": {"epoch": 1}, "begins_later": True}),
                             ("done", {"epochs": 2, "epoch": {"epoch": 1}}))
            (_, *collected), said = self.collect(folder)
            self.assertEqual([run["seed"] for run in collected], [1, 4])  # 4 began with the second epoch
            self.assertEqual(said.splitlines(), [
                f"collect_runs: {folder}/quant-0: left out, because it holds a run of another configuration",
                f"collect_runs: {folder}/quant-2: left out, because it is running, not done",
                f"collect_runs: {folder}/quant-3: left out, because it has epochs 1 of 2 in metrics.jsonl",
                f"collect_runs: {folder}/quant-5: left out, because it has epochs 2 of 2 in metrics.jsonl"])

    def test_a_broken_file_of_a_run_is_named_in_one_line(self):
        for name, content, wrong in (
                ("metrics.jsonl", b'{"train_loss": 1}\n{"train', "quant-0/metrics.jsonl:2: Unterminated string starting at: "
                                                             "line 1 column 2 (char 1)"),
                ("metrics.jsonl", b"[1]\n", "quant-0/metrics.jsonl:1: expected an object, found list"),
                ("metrics.jsonl", b"{}\n", "quant-0: a file lacks 'epoch'"),
                ("config.toml", b"seed\n", "quant-0/config.toml: Expected '=' after a key in a key/value pair (at line 1, column 5)"),
                ("config.toml", b"\xff", "quant-0/config.toml: 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte"),
                ("status.json", b"{}", "quant-0: a file lacks 'config_hash'"),
                ("../sweep.json", b"[]", "sweep.json: expected an object, found list")):
            with tempfile.TemporaryDirectory() as folder:
                self.write_sweep(folder, ("done", {}))
                pathlib.Path(folder, "quant-0", name).write_bytes(content)
                result = subprocess.run([sys.executable, ROOT / "scripts" / "collect_runs", folder, f"{folder}/runs.jsonl"],
                                        capture_output=True, text=True)
                self.assertEqual((result.returncode, result.stderr), (2, f"collect_runs: {folder}/{wrong}\n"))

    def test_what_was_collected_stays_where_the_file_cannot_be_written(self):
        def allow_a_kilobyte():
            resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))

        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "runs.jsonl")
            self.write_sweep(folder, *[("done", {})] * 8)
            self.collect(folder)
            before = file.read_text()
            self.assertGreater(len(before), 1024)
            result = subprocess.run([sys.executable, ROOT / "scripts" / "collect_runs", folder, file], capture_output=True,
                                    text=True, preexec_fn=allow_a_kilobyte)
            self.assertEqual((result.returncode, result.stderr), (2, f"collect_runs: {file}: File too large\n"))
            self.assertEqual(file.read_text(), before)
            self.assertEqual(list(pathlib.Path(folder).glob("*.partial")), [])


class SweepTable(unittest.TestCase):
    def test_there_are_pages_and_their_tables_are_those_of_the_runs(self):
        self.assertTrue(PAGES)
        checked = sweep_table("--check", *PAGES)
        self.assertEqual(checked.returncode, 0, checked.stderr)

    def test_every_run_is_in_a_table(self):
        script = script_as_module()
        shown = {}
        for page in PAGES:
            for file, more in re.findall(r"<!-- sweep_table (\S+)((?: \S+)*) -->", page.read_text()):
                shown.setdefault(page.parent / file, set()).update(script.Sweep(page.parent / file, more.split() or ["*"]).variants)
        for file in RESULTS.rglob("*.jsonl"):
            self.assertEqual(shown.get(file), set(script.Sweep(file).variants), file)

    def test_the_readme_has_the_numbers_of_the_runs(self):
        script = script_as_module()
        findings = RESULTS / "findings"
        sweeps = [script.Sweep(findings / "recipes.jsonl", ("*",), findings / "topk.jsonl", RESULTS / "operators.jsonl"),
                  script.Sweep(RESULTS / "operators_text.jsonl"), script.Sweep(findings / "recipes_text.jsonl")]

        def variant_of(sweep, scheme):
            """The one with the most seeds, of these the best learning rate; those with epochs without compression are others."""
            def scheme_of(run):
                config = run["config"]
                return (*(config[f"compression.{direction}.codec"] for direction in script.DIRECTIONS),
                        config.get("compression.reuse_indices", False))
            found = [variant for variant, runs in sweep.variants.items()
                     if scheme_of(runs[0]) == scheme and not re.search("-(from|until)[0-9]", variant)]
            return sweep.best_rate({variant: sweep.variants[variant] for variant in found})

        text = (ROOT / "README.md").read_text()
        rows = text[text.index("| activations | gradients |"):].split("\n\n")[0].splitlines()[2:]
        self.assertGreater(len(rows), 9)
        for row in rows:
            activations, gradients, fewer, *shown = (cell.strip() for cell in row.split("|")[1:-1])
            codec, is_reused, _ = gradients.partition(", reused indices")
            names = [variant_of(sweep, (activations.strip("`"), codec.strip("`"), bool(is_reused))) for sweep in sweeps]
            over = ["" if name in (None, sweep.none) else script.spread(script.over_none(sweep, name), 1)
                    for sweep, name in zip(sweeps, names)]
            off = names[0] and script.spread(script.scores(sweeps[0].last_epochs(names[0]), "accuracy", "off"), 1)
            self.assertEqual(shown, [over[0], off or "", *over[1:]], row)
            sweep, name = next((sweep, name) for sweep, name in zip(sweeps, names) if name)
            epochs = [epoch for run in sweep.variants[name] for epoch in run["epochs"]]
            self.assertEqual(fewer, f"{script.ratio(epochs, script.DIRECTIONS):.1f}", row)

    def test_each_file_has_what_its_picture_shows(self):
        script = script_as_module()
        for file in RESULTS.rglob("*.jsonl"):
            sweep = script.Sweep(file)
            trained = [variant for variant in sweep.rows() if variant and sweep.last_epochs(variant)]
            self.assertEqual([point["name"] for point in script.points(sweep)], trained, file)

    def test_a_rate_at_which_runs_diverge_is_not_a_rows_best(self):
        runs = [run("a-lr-1", seed, 1.0, 70.0, 160, "diverged") for seed in range(3)]
        runs += [run("a-lr-0.1", seed, 1.0, 60.0, 160) for seed in range(2)] + [run("a-lr-0.01", 0, 1.0, 65.0, 160)]
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(script_as_module().Sweep(file_of(runs, folder)).rows(), ["a-lr-0.1"])

    def test_a_changed_figure_is_noticed(self):
        with tempfile.TemporaryDirectory() as folder:
            for file in (RESULTS / "operators.md", *RESULTS.glob("*.jsonl")):
                shutil.copy(file, folder)
            shutil.copytree(RESULTS / "findings", pathlib.Path(folder, "findings"))
            page = pathlib.Path(folder) / "operators.md"
            text = page.read_text()
            place = text.index("| none |") + text[text.index("| none |"):].index(".") + 1
            page.write_text(text[:place] + str((int(text[place]) + 1) % 10) + text[place + 1:])
            self.assertIn("is not that of its runs", sweep_table("--check", page).stderr)

    def test_rows_are_means_with_standard_errors_best_first(self):
        losses, accuracies = [1.5, 1.25, 1.125], [50.5, 52.25, 49.0]
        runs = [run("three", seed, *of, 160) for seed, of in enumerate(zip(losses, accuracies))]
        runs += [run("one", 0, 1.0, 60.0, 640), run("part", 0, 2.0, 40.0, 320), run("part", 1, 9.0, 1.0, 320, "diverged")]
        with tempfile.TemporaryDirectory() as folder:
            file = file_of(runs, folder)
            rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in sweep_table(file).stdout.splitlines()[2:]]
        self.assertEqual(rows[0], ["one", "1", "1.0", "1.0", "0.25", "0", "1.000", "60.00", "59.00"])

        def shown(values, digits):
            mean = sum(values) / 3
            error = math.sqrt(sum((value - mean)**2 for value in values) / 2 / 3)
            return f"{mean:.{digits}f} ± {error:.{digits}f}"

        self.assertEqual(rows[1], ["three", "3", "4.0", "1.0", "0.25", "0", shown(losses, 3), shown(accuracies, 2),
                                   shown([on - 1 for on in accuracies], 2)])
        self.assertEqual(rows[2], ["part", "2, 1 diverged", "2.0", "1.0", "0.25", "0", "2.000", "40.00", "39.00"])

    def test_a_network_in_one_stage_sends_nothing(self):
        whole = run("whole", 0, 1.0, 60.0, 640)
        whole["epochs"][0]["boundaries"] = {}
        with tempfile.TemporaryDirectory() as folder:
            result = sweep_table(file_of([whole, run("cut", 0, 1.0, 50.0, 160)], folder))
        self.assertEqual(result.stderr, "")
        self.assertIn("| whole | 1 | 1.0 | 1.0 |  |  | 1.000 | 60.00 | 59.00 |\n", result.stdout)

    def test_a_reader_that_goes_away_is_no_error(self):
        reads, writes = os.pipe()
        os.close(reads)
        with tempfile.TemporaryDirectory() as folder:
            said = subprocess.run([sys.executable, ROOT / "scripts" / "sweep_table", file_of([run("one", 0, 1.0, 60.0, 640)], folder)],
                                  stdout=writes, stderr=subprocess.PIPE, text=True)
        os.close(writes)
        self.assertEqual(said.stderr, "")

    def test_text_is_judged_by_its_perplexity(self):
        runs = [run("high", 0, 1.0, 60.0, 640), run("low", 0, 1.0, 50.0, 640)]
        for one, perplexity in zip(runs, (300.0, 200.0)):
            for mode in one["epochs"][0]["test"].values():
                mode["perplexity"] = perplexity
        with tempfile.TemporaryDirectory() as folder:
            file = file_of(runs, folder)
            head, _, *rows = sweep_table(file).stdout.splitlines()
        self.assertIn("| perplexity on | off |", head)
        self.assertEqual([row.split("|")[1].strip() for row in rows], ["low", "high"])
        self.assertIn("| 200.00 | 200.00 |", rows[0])

    def test_a_run_that_diverged_in_its_first_epoch_has_no_scores(self):
        lost = run("lost", 0, 1.0, 9.0, 640, "diverged") | {"epochs": []}
        with tempfile.TemporaryDirectory() as folder:
            rows = sweep_table(file_of([lost, run("good", 0, 1.0, 60.0, 640)], folder)).stdout.splitlines()[2:]
        self.assertTrue(rows[0].startswith("| good | 1 |"))
        self.assertTrue(rows[1].startswith("| lost | 1, 1 diverged |  |"))

    def test_a_perplexity_that_is_not_finite_is_the_worst(self):
        runs = [run("lost", 0, 1.0, 1.0, 320), run("lost", 1, 1.0, 1.0, 320), run("high", 0, 1.0, 1.0, 160), run("none", 0, 1.0, 1.0, 640),
                run("none", 1, 1.0, 1.0, 640)]
        for one, perplexity in zip(runs, (2.0, None, 300.0, 4.0, 4.0)):
            one["epochs"][0]["test"] = {"on": {"perplexity": perplexity}, "off": {"perplexity": 3.0}}
        with tempfile.TemporaryDirectory() as folder:
            file = file_of(runs, folder)
            rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in sweep_table(file).stdout.splitlines()[2:]]
            script = script_as_module()
            self.assertEqual([point["name"] for point in script.points(script.Sweep(file))], ["high", "none"])
        self.assertEqual([row[0] for row in rows], ["none", "high", "lost"])
        self.assertEqual(rows[2][-3:], ["", "", "3.00 ± 0.00"])

    def test_feedback_has_columns_of_its_modes(self):
        runs = [run("ef", 0, 1.0, 60.0, 640), run("plain", 0, 1.0, 50.0, 640), run("lost", 0, 1.0, 9.0, 640, "diverged")]
        runs[0]["epochs"][0]["test"] |= {"frozen": {"accuracy": 61.5}, "live": {"accuracy": 62.25}}
        with tempfile.TemporaryDirectory() as folder:
            head, rule, ef, plain, lost = sweep_table(file_of(runs, folder)).stdout.splitlines()
        self.assertTrue(head.endswith("| off | frozen | live |"))
        self.assertTrue(ef.endswith("| 60.00 | 59.00 | 61.50 | 62.25 |"))
        self.assertTrue(plain.endswith("| 50.00 | 49.00 |  |  |"))
        self.assertEqual({line.count("|") for line in (head, rule, ef, plain, lost)}, {12})

    def test_a_mode_that_a_seed_lacks_has_an_empty_cell(self):
        whole, part = run("one", 0, 1.0, 60.0, 640), run("one", 1, 1.0, 60.0, 640)
        del part["epochs"][0]["test"]["off"]
        for runs in ([whole, part], [part, whole]):
            with tempfile.TemporaryDirectory() as folder:
                self.assertTrue(sweep_table(file_of(runs, folder)).stdout.endswith("| 60.00 ± 0.00 |  |\n"))

    def test_the_papers_scores_stand_last(self):
        runs = [run("quant", 0, 1.0, 60.0, 640), run("none", 0, 1.0, 50.0, 640), run("lost", 0, 1.0, 9.0, 640, "diverged")]
        runs[0]["paper"] = {"on": 92.5, "off": 93.125}
        runs[2]["paper"] = {"on": 21.0}
        with tempfile.TemporaryDirectory() as folder:
            head, rule, quant, none, lost = sweep_table(file_of(runs, folder)).stdout.splitlines()
        self.assertTrue(head.endswith("| over none | off | paper, on | paper, off |"))
        self.assertTrue(quant.endswith("| 60.00 | 10.0 | 59.00 | 92.50 | 93.12 |"))
        self.assertTrue(none.endswith("| 50.00 |  | 49.00 |  |  |"))
        self.assertTrue(lost.endswith("|  |  | 21.00 |  |"))
        self.assertEqual({line.count("|") for line in (head, rule, quant, none, lost)}, {13})

    def test_over_none_is_that_of_the_seeds_that_both_have(self):
        runs = [run("none", 0, 1.0, 50.0, 640), run("none", 1, 1.0, 60.0, 640), run("none", 3, 1.0, 99.0, 640)]
        runs += [run("quant", seed, 1.0, on, 320) for seed, on in enumerate((49.0, 56.0, 10.0))]
        runs.append(run("other", 2, 1.0, 30.0, 320))
        with tempfile.TemporaryDirectory() as folder:
            file_of(runs, folder)
            page = pathlib.Path(folder) / "page.md"
            page.write_text("<!-- sweep_table runs.jsonl quant other -->\n\n")  # without the row of none
            self.assertEqual(sweep_table("--update", page).returncode, 0)
            head, _, quant, other = [line.split(" | ") for line in page.read_text().splitlines() if line.startswith("|")]
        self.assertEqual(head[8], "over none")
        self.assertEqual((quant[0], quant[8]), ("| quant", "-2.5 ± 1.5"))
        self.assertEqual((other[0], other[8]), ("| other", ""))

    def test_over_none_is_that_of_the_best_learning_rate_with_the_most_seeds(self):
        runs = [run(f"none-lr-{rate}", seed, 1.0, on, 640)
                for rate, seed, on in ((0.1, 0, 50.0), (0.1, 1, 51.0), (0.2, 0, 60.0), (0.2, 1, 61.0), (0.3, 0, 99.0))]
        runs.append(run("quant-lr-0.3", 0, 1.0, 58.0, 320))
        with tempfile.TemporaryDirectory() as folder:
            rows = [line.split(" | ") for line in sweep_table(file_of(runs, folder)).stdout.splitlines()[2:]]
        over = {row[0].strip("| "): row[8] for row in rows}
        self.assertEqual(over, {"none-lr-0.3": "39.0", "none-lr-0.2": "", "quant-lr-0.3": "-2.0", "none-lr-0.1": "-10.0 ± 0.0"})

    def test_the_picture_has_the_best_learning_rate_of_a_row_with_the_most_seeds(self):
        runs = [run(f"quant-lr-{rate}", seed, 1.0, on, 320)
                for rate, seed, on in (("0.1", 0, 50.0), ("0.1", 1, 51.0), ("1e-05", 0, 60.0), ("1e-05", 1, 61.0), ("0.3", 0, 99.0))]
        runs += [run("none-lr-0.1", 0, 1.0, 70.0, 640), run("none-lr-0.3", 0, 1.0, 71.0, 640), run("other", 0, 1.0, 40.0, 320)]
        with tempfile.TemporaryDirectory() as folder:
            script = script_as_module()
            points = script.points(script.Sweep(file_of(runs, folder)))
        self.assertEqual([point["name"] for point in points], ["quant-lr-1e-05", "none-lr-0.3", "other"])

    def test_a_page_shows_the_variants_that_it_names(self):
        with tempfile.TemporaryDirectory() as folder:
            file_of([run("topk10", 0, 1.0, 60.0, 640), run("topk5", 0, 1.0, 50.0, 640), run("none", 0, 1.0, 70.0, 640)], folder)
            page = pathlib.Path(folder) / "page.md"
            for patterns, shown in (("topk* lost", ["topk10", "topk5"]), ("none topk5", ["none", "topk5"])):
                page.write_text(f"<!-- sweep_table runs.jsonl {patterns} -->\n\n")
                self.assertEqual(sweep_table("--update", page).returncode, 0)
                rows = [line for line in page.read_text().splitlines() if line.startswith("|")][2:]
                self.assertEqual([row.split("|")[1].strip() for row in rows], shown)

    def test_the_error_is_of_the_runs_that_measured_it(self):
        runs = [run("part", 0, 1.0, 60.0, 640), run("part", 1, 1.0, 60.0, 640), run("none", 0, 1.0, 50.0, 640)]
        for unmeasured in (runs[1], runs[2]):
            for boundary in unmeasured["epochs"][0]["boundaries"].values():
                boundary["activations"]["error"] = boundary["gradients"]["error"] = None
        with tempfile.TemporaryDirectory() as folder:
            _, _, part, none = sweep_table(file_of(runs, folder)).stdout.splitlines()
        self.assertEqual([cell.strip() for cell in part.split("|")[5:7]], ["0.25", "0"])
        self.assertEqual([cell.strip() for cell in none.split("|")[5:7]], ["", ""])

    def test_a_crossed_table_has_each_variant_over_none(self):
        runs = [run("none", seed, 1.0, on, 640) for seed, on in enumerate((60.0, 62.0, 64.0))]
        runs += [run("fw2-tensor", seed, 1.0, on, 160) for seed, on in enumerate((50.0, 58.0, 57.0))]
        runs += [run("fw2-block64", 1, 1.0, 61.5, 160), run("bw2-tensor", 0, 1.0, 30.0, 160), run("bw2-tensor", 2, 1.0, 32.0, 160)]
        with tempfile.TemporaryDirectory() as folder:
            file = file_of(runs, folder)
            page = pathlib.Path(folder) / "page.md"
            page.write_text("<!-- crossed_table runs.jsonl fw2 bw2 x tensor block64 -->\n\n| old |\n")
            self.assertEqual(sweep_table("--update", page).stderr, "")
            self.assertEqual(page.read_text().split("\n\n")[1].splitlines(), [
                "| accuracy over none | tensor | block64 |", "| --- | ---: | ---: |",
                "| fw2 | -7.0 ± 1.7 | -0.5 (1) |", "| bw2 | -31.0 ± 1.0 (2) |  |"])
            page.write_text("<!-- crossed_table runs.jsonl fw2 x tensor sample -->\n\n")
            refused = sweep_table("--check", page)
        self.assertEqual((refused.returncode, refused.stderr),
                         (2, f"sweep_table: {file}: expected runs of a row or column sample, found none\n"))

    def test_the_best_of_a_factor_is_that_over_none_of_its_file(self):
        def both_ways(variant, seed, on, wire):
            one = run(variant, seed, 1.0, on, wire)
            for boundary in one["epochs"][0]["boundaries"].values():
                boundary["gradients"] = {"raw": 640, "wire": wire, "error": 0.5, "mean_error": 0}
            return one

        runs = [run("none", seed, 1.0, on, 640) for seed, on in ((0, 59.0), (1, 62.0), (2, 99.0))]
        runs += [run("quarter", 0, 1.0, 57.0, 160), run("quarter", 1, 1.0, 61.0, 160)]
        runs += [run("worse", 0, 1.0, 50.0, 150), run("worse", 1, 1.0, 50.0, 150)]
        runs += [run("milder", 0, 1.0, 59.0, 320), run("milder", 1, 1.0, 62.0, 320), run("one seed", 0, 1.0, 60.0, 160)]
        other = [both_ways("both", 0, 50.0, 170), both_ways("both", 1, 51.0, 170)]  # 3.76 times, which counts as 4
        other += [run("none", 0, 1.0, 61.0, 640), run("none", 1, 1.0, 60.0, 640)]
        other.append(run("quarter", 0, 1.0, 90.0, 160))  # the first file has this run
        warm = [run("warm", seed, 1.0, 99.0, 160) for seed in (0, 1)]  # 1.6 times over the training
        for one in warm:
            one["epochs"].insert(0, run("warm", 0, 1.0, 99.0, 640)["epochs"][0])
        lucky = [run("lucky", seed, 1.0, 95.0, 160) for seed in (2, 3)]  # seed 2 is, and 3 has no none
        lucky.append(run("lucky", 0, 1.0, 50.0, 160))
        with tempfile.TemporaryDirectory() as folder:
            file_of([*runs, *lucky], folder).rename(pathlib.Path(folder) / "first.jsonl")
            file_of([*other, *warm], folder)
            page = pathlib.Path(folder) / "page.md"
            page.write_text("<!-- best_table first.jsonl runs.jsonl 2 4 8 -->\n\n")
            self.assertEqual(sweep_table("--update", page).returncode, 0)
            rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.read_text().splitlines()[4:]]
        self.assertEqual(rows, [["2", "milder", "2.0", "0.0 ± 0.0", "", "", "", "both", "3.8", "-10.0 ± 1.0"],
                                ["4", "quarter", "4.0", "-1.5 ± 0.5", "", "", "", "both", "3.8", "-10.0 ± 1.0"],
                                ["8"] + [""] * 9])

    def test_fewer_bytes_are_those_of_all_seeds(self):
        script = script_as_module()
        with tempfile.TemporaryDirectory() as folder:
            sweep = script.Sweep(file_of([run("varies", 0, 1.0, 50.0, 64), run("varies", 1, 1.0, 50.0, 192)], folder))
        self.assertAlmostEqual(script.ratio(sweep.last_epochs("varies"), script.DIRECTIONS), 2560 / (704 + 832))

    def test_the_line_of_the_picture_has_those_that_nothing_beats(self):
        script = script_as_module()
        runs = [run("none", 0, 1.0, 60.0, 640), run("fewest", 0, 1.0, 30.0, 10), run("good", 0, 1.0, 50.0, 64),
                run("good", 1, 1.0, 54.0, 64), run("worse", 0, 1.0, 51.0, 64), run("beaten", 0, 1.0, 29.0, 320)]
        with tempfile.TemporaryDirectory() as folder:
            file = file_of(runs, folder)
            points = script.points(script.Sweep(file))
        self.assertEqual([point["name"] for point in script.unbeaten(points)], ["none", "good", "fewest"])
        self.assertEqual(script.estimate([3.0]), (3.0, 0.0))
        good = next(point for point in points if point["name"] == "good")
        self.assertEqual(good["score"], (52.0, 2.0))
        self.assertEqual(good["compressed"], ["activations"])
        self.assertEqual((good["error"]["activations"], good["shift"]["activations"]), (0.25, 0.125))
        self.assertAlmostEqual(good["ratio"], 1280 / 704)


if __name__ == "__main__":
    unittest.main()
