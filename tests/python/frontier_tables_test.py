#!/usr/bin/env python3
"""The tables of times to a target (scripts/frontier_tables) against their files, computed once more."""

import importlib.machinery
import importlib.util
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

sys.dont_write_bytecode = True  # none beside the script
ROOT = pathlib.Path(__file__).resolve().parents[2]
RESULTS = ROOT / "docs" / "results"
PAGES = [page for page in RESULTS.glob("*.md") if "<!-- frontier_tables " in page.read_text()]


def row_of(variant, seconds):
    """Of one seed, which never gets there where `seconds` is None."""
    return {"variant": variant, "seeds": 1, "reached": int(seconds is not None), "steps": seconds and 10 * seconds,
            "step_seconds": seconds and 0.1, "seconds": seconds, "seconds_se": None, "bytes": seconds and 1e6}


def frontier_tables(*arguments):
    return subprocess.run([sys.executable, ROOT / "scripts" / "frontier_tables", *arguments], capture_output=True, text=True)


class FrontierTables(unittest.TestCase):
    def test_there_are_pages_and_their_tables_are_those_of_their_files(self):
        self.assertTrue(PAGES)
        checked = frontier_tables("--check", *PAGES)
        self.assertEqual(checked.returncode, 0, checked.stderr)

    def test_rows_are_those_of_the_file_and_times_are_over_the_best_by_hand(self):
        for page in PAGES:
            text = page.read_text()
            mark = re.search(r"<!-- frontier_tables (\S+) -->", text)
            for one in json.loads((page.parent / mark[1]).read_text())["networks"]:
                begin = text.index(f"**{one['network']['name']}**", mark.end())
                shown = [[cell.strip() for cell in line.split("|")[1:-1]]
                         for line in text[begin:].split("\n\n")[1].splitlines()[2:] if line.startswith("|")]
                self.assertEqual([row[0] for row in shown], [row["variant"] for row in one["rows"]])
                best = min(row["seconds"] for row in one["rows"] if row["reached"] and not row["variant"].startswith("auto-"))
                for cells, row in zip(shown, one["rows"]):
                    if not row["reached"]:
                        self.assertEqual(cells[2], "never")
                        continue
                    self.assertAlmostEqual(float(cells[2]), row["steps"], delta=0.5)
                    self.assertAlmostEqual(float(cells[4].split(" ")[0]), row["seconds"], delta=0.051)
                    self.assertAlmostEqual(float(cells[6]), row["seconds"] / best, delta=0.00051)

    def test_steps_and_bytes_are_those_of_the_runs_where_these_are_kept(self):
        archives = list(RESULTS.rglob("*.tar.xz"))
        self.assertTrue(archives)
        for archive in archives:
            with tarfile.open(archive) as files:
                metrics = {pathlib.PurePosixPath(name).parts[0]: [json.loads(line) for line in files.extractfile(name).read().splitlines()]
                           for name in files.getnames() if name.endswith("metrics.jsonl")}
            name = archive.name.removesuffix(".tar.xz")
            of_archive = [file for file in archive.parent.glob("*.json") if re.sub("_(later|to_[0-9.]+)$", "", file.stem) == name]
            self.assertTrue(of_archive)
            for file in of_archive:
                self.check_against(json.loads(file.read_text()), metrics)

    def check_against(self, found, metrics):
        name, target = found["target"].split("=")
        for network, row in ((network, row) for network in found["networks"] for row in network["rows"]):
            steps, sent, trials = [], [], {"trial_batches": [], "trial_seconds": []}
            for epochs in (epochs for run, epochs in metrics.items() if run.rsplit("-seed", 1)[0] == row["variant"]):
                reached = [one["step"] for epoch in epochs for one in epoch["evaluations"] if one["test"]["on"][name] <= float(target)]
                if not reached:
                    continue
                steps.append(reached[0])
                sent.append(0)
                left = reached[0]
                choices = {choice["step"]: choice for epoch in epochs for choice in epoch.get("choices", [])}
                for key, sums in trials.items():
                    sums.append(sum(choice.get(key, 0) for step, choice in choices.items() if step < left))
                for epoch in epochs:  # of the last one the share of its steps
                    wire = sum(boundary[way]["wire_bytes"] for boundary in epoch["boundaries"] for way in ("activations", "gradients"))
                    sent[-1] += wire * min(left, epoch["steps"]) / epoch["steps"]
                    left -= min(left, epoch["steps"])
            self.assertEqual(row["reached"], len(steps))
            if steps:
                self.assertAlmostEqual(row["steps"], sum(steps) / len(steps))
                self.assertAlmostEqual(row["bytes"], sum(sent) / len(sent), delta=1)
            if steps and network["chosen"] and row["variant"] == "auto-" + network["network"]["name"]:
                for key, sums in trials.items():
                    self.assertAlmostEqual(network["chosen"].get(key, 0), sum(sums) / len(sums), msg=f"{row['variant']}, {key}")

    def shown(self, rows, **trials):
        """The table of a network of these rows, of which auto's trials were 20 batches."""
        chosen = {"step_seconds": 1, "step_factor": 1, "trial_batches": 20, **trials, "codecs": [["none", "bf16"], ["none", "bf16"], ["bf16", "bf16"]]}
        found = {"networks": [{"network": {"name": "home", "bandwidth": "1Mbps", "latency": "0s"}, "rows": rows, "chosen": chosen}]}
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "found.json").write_text(json.dumps(found))
            page = pathlib.Path(folder, "page.md")
            page.write_text("<!-- frontier_tables found.json -->\n<!-- to here -->\n")
            result = frontier_tables("--update", page)
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            return page.read_text()

    def test_auto_over_the_best_by_hand_is_told_for_each_target(self):
        def found(target, *networks):
            return {"target": target, "networks": [{"network": {"name": name}, "rows": rows} for name, rows in networks]}

        partly = row_of("auto-home", 3.0) | {"seeds": 4, "reached": 3}
        first = found("loss=1.4", ("home", [row_of("none", 4.0) | {"seconds_se": 0.4}, row_of("bf16", 5.0), row_of("auto-home", 3.0) | {"seconds_se": 0.4}]),
                      ("far", [row_of("none", None), row_of("auto-far", 3.0)]))
        second = found("loss=1.2", ("home", [partly, row_of("none", 2.0) | {"seconds_se": 0.4, "seeds": 5, "reached": 2}]), ("far", [row_of("none", 2.0), row_of("auto-far", None)]))
        with tempfile.TemporaryDirectory() as folder:
            for name, one in (("first", first), ("second", second)):
                pathlib.Path(folder, f"{name}.json").write_text(json.dumps(one))
            page = pathlib.Path(folder, "page.md")
            page.write_text("<!-- over_best first.json second.json -->\n<!-- to here -->\n")
            result = frontier_tables("--update", page)
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            self.assertEqual(page.read_text().splitlines()[2:-2], [
                "| target | home | far |", "| --- | ---: | ---: |",
                "| loss 1.4 | 0.750 ± 0.125 |  |", "| loss 1.2 | 1.500, 3 of 4 seeds, best 2 of 5 seeds | never |"])
            self.assertEqual(frontier_tables("--check", page).returncode, 0)
            pathlib.Path(folder, "first.json").write_text(json.dumps(found("loss=1", ("home", [row_of("none", 1.0)]))))
            self.assertEqual(frontier_tables("--check", page).stderr, "frontier_tables: expected a row auto-home, found none\n")

    def test_auto_may_be_the_only_one_that_gets_there(self):
        page = self.shown([row_of("auto-home", 2.0), row_of("none", None)])
        self.assertIn("| auto-home | 1 | 20 | 100 | 2.0 | 1 |  |\n", page)
        self.assertIn("Until the target its trials were 20 batches more, in the mean over seeds.", page)

    def test_trials_until_the_target_are_told_where_auto_reached_it(self):
        page = self.shown([row_of("none", 2.0), row_of("auto-home", None)])
        self.assertIn("| none | 1 | 20 | 100 | 2.0 | 1 | 1.000 |\n", page)
        self.assertIn("forward / backward: 1 to 2 `none` / `bf16`, 3 `bf16` / `bf16`.\n", page)
        self.assertNotIn("Until the target", page)

    def test_the_seconds_of_trials_count_over_the_best_by_hand(self):
        page = self.shown([row_of("none", 2.0), row_of("auto-home", 1.8), row_of("bf16", 2.5)], trial_seconds=0.6)
        self.assertIn("its trials were 20 batches more and 0.6 s, in the mean over seeds: with them it is 1.200 over best.\n", page)
        page = self.shown([row_of("auto-home", 1.8), row_of("none", None)], trial_seconds=0.6)
        self.assertIn("its trials were 20 batches more and 0.6 s, in the mean over seeds.\n", page)

    def script(self):
        loader = importlib.machinery.SourceFileLoader("frontier_tables", str(ROOT / "scripts" / "frontier_tables"))
        script = importlib.util.module_from_spec(importlib.util.spec_from_loader("frontier_tables", loader))
        loader.exec_module(script)
        return script

    def test_stages_take_the_less_the_greater_the_compute_of_a_runs_network(self):
        with tempfile.TemporaryDirectory() as folder:
            runs = []
            for name, compute, seconds in (("a", "", 1.0), ("b", ", compute = 3", 6.0), ("c", ", compute = 2", 10.0)):
                run = pathlib.Path(folder, name)
                run.mkdir()
                (run / "config.toml").write_text(f'networks = [{{ name = "home", bandwidth = "1Mbps", latency = "0s"{compute} }}]\n')
                (run / "metrics.jsonl").write_text(json.dumps({"stages": [{"forward_seconds": seconds, "backward_seconds": seconds}]}) + "\n")
                runs.append(run)
            self.assertEqual(self.script().median_stages(runs, "home"), [4.0])

    def test_choices_are_those_of_the_first_seed_or_of_the_only_one(self):
        script = self.script()
        codecs = {"activations": {"codec": "bf16"}, "gradients": {"codec": "none"}}
        choice = {"step": 4, "step_seconds": 1, "step_factor": 1, "trial_batches": 20, "trial_seconds": 6, "boundaries": [codecs]}
        steps = {}  # that a run takes to the target
        script.said_of = lambda run, *_: {"rows": [{"reached": int(run in steps), "steps": steps.get(run)}]}
        for name in ("auto-home", "auto-home-seed3"):
            with tempfile.TemporaryDirectory() as folder:
                def run_of(name, choice):
                    run = pathlib.Path(folder, name)
                    run.mkdir(exist_ok=True)
                    (run / "metrics.jsonl").write_text(json.dumps({"choices": [choice]}) + "\n")
                    return run

                own, others = run_of(name, choice), pathlib.Path(folder, "auto-home-office-seed3")
                steps = {own: 10}
                said = {"step_seconds": 1, "step_factor": 1, "codecs": [["bf16", "none"]]}
                self.assertEqual(script.choices_of([others, own], "home", "1Mbps,0s", "loss=1", []), {**said, "trial_batches": 20, "trial_seconds": 6})
                second = run_of("auto-home-seed4", choice | {"trial_batches": 10, "trial_seconds": 3})
                self.assertEqual(script.choices_of([own, second], "home", "1Mbps,0s", "loss=1", []), {**said, "trial_batches": 20, "trial_seconds": 6})
                steps[second] = 5
                self.assertEqual(script.choices_of([own, second], "home", "1Mbps,0s", "loss=1", []), {**said, "trial_batches": 15, "trial_seconds": 4.5})
                steps[own] = 4
                self.assertEqual(script.choices_of([own, second], "home", "1Mbps,0s", "loss=1", [])["trial_seconds"], 1.5, "the first one's is behind its target")
                run_of(name, {"step": 0, "boundaries": [codecs]})  # the one that training begins with, which may stay
                self.assertEqual(script.choices_of([own], "home", "1Mbps,0s", "loss=1", []),
                                 {"trial_batches": 0, "trial_seconds": 0, "codecs": [["bf16", "none"]]})
                steps = {}
                self.assertEqual(script.choices_of([own], "home", "1Mbps,0s", "loss=1", []), {"codecs": [["bf16", "none"]]})

    def test_what_cannot_be_asked_is_a_line(self):
        with tempfile.TemporaryDirectory() as folder:
            def said():
                result = frontier_tables(folder, "loss=1", "home", f"{folder}/found.json")
                self.assertEqual(result.returncode, 2)
                return result.stderr

            self.assertEqual(said(), f"frontier_tables: {folder}/sweep.json: No such file or directory\n")
            pathlib.Path(folder, "sweep.json").write_text('{"runs": []}')
            self.assertEqual(said(), f"frontier_tables: {folder}: no run is done\n")
            own = pathlib.Path(folder, "a")
            own.mkdir()
            pathlib.Path(folder, "sweep.json").write_text('{"runs": [{"folder": "a", "status": "done"}]}')
            stages = {"stages": [{"forward_seconds": 1, "backward_seconds": 1}]}
            for name, text in (("status.json", '{"code_version": "1", "machine": "m"}'), ("config.toml", "networks = []\n"),
                               ("metrics.jsonl", json.dumps(stages) + "\n")):
                (own / name).write_text(text)
            self.assertEqual(said(), f"frontier_tables: home: expected the name of a network of {own}\n")
            (own / "config.toml").write_text('networks = [{ name = "home", bandwidth = ["1Mbps"], latency = "0s" }]\n')
            self.assertEqual(said(), f"frontier_tables: {own}: expected a network home whose links are alike, without stage_seconds\n")
            (own / "config.toml").write_text('networks = [{ name = "home", bandwidth = "1Mbps", latency = "0s" }]\n')
            self.assertRegex(said(), "^frontier_tables: [^\n]+\n$")  # what strait says
            line = json.dumps(stages) + "\n"
            for name, text, wrong in (
                    ("a/metrics.jsonl", line + '{"stages', "a/metrics.jsonl:2: Unterminated string starting at: line 1 column 2 (char 1)"),
                    ("a/metrics.jsonl", line + '{"stages": []}\n', f"a: expected 1 stages, as {own} has, found 0"),
                    ("sweep.json", "[]", "sweep.json: expected an object, found list")):
                pathlib.Path(folder, name).write_text(text)
                self.assertEqual(said(), f"frontier_tables: {folder}/{wrong}\n")
            self.assertFalse(pathlib.Path(folder, "found.json").exists())

    def test_a_mark_without_an_end_is_named_and_nothing_is_lost(self):
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder, "page.md")
            pathlib.Path(folder, "found.json").write_text('{"networks": []}')
            begin = "<!-- frontier_tables found.json -->"
            two = "<!-- frontier_tables found.json found.json -->"
            page.write_text(f"{two}\n<!-- to here -->\n")
            self.assertIn(f"behind it, found {two}", frontier_tables("--check", page).stderr)
            for text in (f"{begin}\nwords\n", f"{begin}\nwords\n<!-- frontier_tables other.json -->\n<!-- to here -->\n"):
                page.write_text(text)
                result = frontier_tables("--update", page)
                self.assertEqual((result.returncode, result.stderr), (2, (
                    f"frontier_tables: {page}: expected <!-- frontier_tables FILE.json --> or <!-- over_best FILE.json... -->, and "
                    f"<!-- to here --> behind it, found {begin}\n")))
                self.assertEqual(page.read_text(), text)

    def test_a_changed_figure_is_noticed(self):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(RESULTS, folder, dirs_exist_ok=True)
            page = pathlib.Path(folder) / PAGES[0].name
            page.write_text(re.sub(r"(\| [\w-]+ \| \d+ \| )\d", r"\g<1>9", page.read_text(), count=1))
            self.assertIn("is not that of its file", frontier_tables("--check", page).stderr)


if __name__ == "__main__":
    unittest.main()
