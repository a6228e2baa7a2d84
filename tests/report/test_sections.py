from __future__ import annotations

from dataclasses import replace

from tests.report.sample_detector import realistic_report
from tests.report.samples import chain_report, make_choice, make_site, small_report
from trtplug.report.data import ReportCandidateTable
from trtplug.report.sections import sections


def test_each_thing_that_stands_out_is_listed() -> None:
    added, sites, plugin, misses, islands, near, warnings = sections(small_report())
    assert added.title == "Added by the builder: 1 reformat, 1 cast, 1 copy"
    assert [line.words for line in added.lines] == [
        "layer 1: reformat, fp32 Linear → fp32 NHWC, 1.50 KiB",
        "layer 3: cast, fp32 NHWC → fp16 NHWC, 6.00 KiB",
        "layer 5: copy, fp16 Linear, 4.00 KiB",
    ]
    assert sites.title == "Sites: 1 of 3 fused into one layer, 1 by a plugin"
    assert [(line.name, line.words) for line in sites.lines] == [
        (
            r"two\nlines",
            "Conv 3x3 + Relu; split over layers (4, 3); 2 layers hold its nodes",
        )
    ]
    assert plugin.title == "Plugin: planned for 1 of 2 sites, 1 kept"
    assert [(line.name, line.words) for line in plugin.lines] == [
        (
            "`x`",
            "plugin one of igemm_64x64x32_s4, a|b, in pair a|b+`x`; 2 reformats before, 0 after; "
            "<script>alert(1)</script>",
        ),
        ("", "1 native: {{ 7 * 7 }}{% raw %}"),
    ]
    assert [(line.name, line.words) for line in misses.lines] == [
        ("output-also-used", "2"),
        ("no-activation", "1"),
    ]
    assert islands.title == "Kept in float32: 3"
    assert islands.lines[1].words == "Softmax: why a|b"
    assert near.title == "Near ties: 1 (by the builder's own timing of single kernels)"
    assert [line.words for line in near.lines] == ["layer 2: 3.1% to a|b (3.25 and 3.35 µs)"]
    assert [line.words for line in warnings.lines][3] == r"two\nlines"


def test_a_plugin_that_the_engine_lacks_stands_out() -> None:
    choice = make_choice(choice="plugin", tactics=("depthwise_1",), tactic="depthwise_1")
    lost = make_site("a", ("a",), "unknown", (), choice)
    plugin = sections(replace(small_report(), sites=(lost,)))[2]
    assert plugin.title == "Plugin: planned for 1 of 1 site, 0 kept"
    (line,) = plugin.lines
    assert line.words.startswith("NOT IN THE ENGINE; plugin depthwise_1; 0 reformats before")


def test_without_plugins_nothing_is_said_of_them() -> None:
    report = small_report()
    sites = tuple(replace(site, choice=None) for site in report.sites)
    titles = [s.title for s in sections(replace(report, sites=sites))]
    assert not any(t.startswith("Plugin") for t in titles)


def test_candidates_of_no_layer_say_why() -> None:
    table = ReportCandidateTable(
        op="a\nb",
        cache_key="0x0",
        onnx_nodes=(),
        candidates=small_report().layers[2].candidates,
        margin=None,
        near_tie=None,
        selected_by="builder",
        why="no layer",
    )
    section = sections(replace(chain_report(2), unjoined_candidates=(table,)))[-1]
    assert section.title == "Candidate tables without a layer: 1"
    assert [(x.name, x.words) for x in section.lines] == [(r"a\nb", "3 candidates; no layer")]


def test_warnings_have_no_heading_where_there_are_none() -> None:
    titles = [s.title for s in sections(chain_report(2))]
    assert titles == [
        "Added by the builder: 0 reformats, 0 casts",
        "Sites: 2 of 2 fused into one layer",
        "Near misses: 0",
    ]


def test_plugins_are_counted_and_sites_in_no_layer_listed() -> None:
    report = realistic_report()
    plugin = make_site("p", ("p",), "plugin", ())
    lost = make_site("lost", ("lost",), "unknown", ("not a layer",))
    section = sections(replace(report, sites=(plugin, lost)))[1]
    assert section.title.endswith(", 1 by a plugin")
    assert [line.words for line in section.lines] == [
        "Conv 3x3 + Relu; in no layer; 1 layers hold its nodes"
    ]


def test_overridden_tactics_are_listed() -> None:
    report = small_report()
    titles = [s.title for s in sections(report)]
    assert not any("overridden" in title for title in titles)
    pinned = replace(report.layers[2], selected_by="pin", margin=-0.5, near_tie=None)
    replayed = replace(report.layers[3], selected_by="lock")
    changed = replace(report, layers=(*report.layers[:2], pinned, replayed, *report.layers[4:]))
    (section,) = (s for s in sections(changed) if "overridden" in s.title)
    assert section.title == "Tactics overridden by --pin, --ban or --prefer: 1"
    assert [line.words for line in section.lines] == [
        "layer 2 --pin: chosen at first run, margin -50.0%"
    ]
