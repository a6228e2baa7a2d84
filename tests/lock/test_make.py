from __future__ import annotations

from dataclasses import replace

from tests.backends.trt.tactic_logs import KEY, OTHER_KEY, table
from tests.bundle.samples import fill
from tests.report.samples import chain_report, make_choice, small_report
from tests.timing.cache_stand_in import identity, values
from trtplug.bundle.manifest import ManifestModel
from trtplug.lock.make import lock_layers, lock_tactics, make_lock
from trtplug.report.candidates import Tactics
from trtplug.timing.files import CacheEntry, make_sidecar


def lock_of(folder, report, cached=None):
    """Of a target of the bundle in a folder."""
    (made,) = fill(folder).targets
    model = ManifestModel(file="m.onnx", sha256="0" * 64)
    return make_lock(model, made, "lib.so", report, {}, Tactics(), cached)


def test_layers_carry_key_and_chosen_tactic():
    layers = lock_layers(small_report())
    assert [(x.cache_key is None, x.tactic_hash) for x in layers[1:3]] == [
        (True, None),
        (False, "0x8047623b83d18058"),
    ]
    assert layers[1].kernel == "__myl_Move_0xa2da44ecc9169433fc26b35f61786c6c"
    assert layers[2].kernel_status == "chosen_at_first_run"


def test_sites_carry_the_choice_and_the_kernel(tmp_path):
    report = chain_report(2)
    planned = make_choice(choice="plugin", tactic="igemm", kernel_sha256="ab", kit_sha256="cd")
    kept, dropped = (
        replace(site, choice=planned, outcome=outcome)
        for site, outcome in zip(report.sites, ("plugin", "unknown"), strict=True)
    )
    report = replace(report, sites=(kept, dropped))
    plugin, native = lock_of(tmp_path, report).sites
    assert (plugin.choice, plugin.tactic, plugin.ptx_sha256) == ("plugin", "igemm", "ab")
    assert plugin.kit_sha256 == "cd"
    # A planned plugin that the engine lacks is not recorded as a choice.
    assert (native.choice, native.tactic, native.ptx_sha256) == ("native", None, None)
    assert native.kit_sha256 is None
    assert native.nodes == ("conv1", "relu1")


def test_tactics_are_all_keys_of_the_cache_named_where_the_log_names_them():
    logged = table("conv", [0.01, 0.02], onnx_layers=("n",))
    winners = {OTHER_KEY: "0x9", KEY: logged.candidates[1].tactic_hash}
    first, second = lock_tactics(winners, [logged], {"n": "label"}, {KEY: "pin"})
    assert (first.key, first.op, first.onnx_nodes) == (KEY, "conv", ("label",))
    # The winner in the cache, which need not be what this build chose.
    assert first.kernel == logged.candidates[1].kernel
    assert first.asked_by == "pin"
    assert (second.key, second.op, second.kernel) == (OTHER_KEY, None, None)
    assert second.asked_by is None
    (strange,) = lock_tactics({KEY: "0x77"}, [logged], {}, {})
    assert strange.kernel is None


def test_gpu_and_tactics_are_those_of_the_cache(tmp_path):
    sidecar = make_sidecar(identity(), b"blob", values(1, 2), ())
    lock = lock_of(tmp_path, small_report(), CacheEntry(sidecar=sidecar, blob=b"blob"))
    assert lock.gpu is not None
    found = (lock.gpu.name, lock.gpu.driver, lock.gpu.cuda, lock.gpu.sm)
    assert found == ("NVIDIA H200", "580.95.05", "13.0", "sm_90")
    assert lock.winners == sidecar.winners
    assert lock.timing_cache is not None
    assert (lock.timing_cache.file, lock.timing_cache.keys) == ("sm_89/timing.cache", 2)
    assert lock.timing_cache.sha256 == sidecar.sha256


def test_without_a_cache_a_lock_has_no_tactics(tmp_path):
    lock = lock_of(tmp_path, small_report())
    assert (lock.gpu, lock.timing_cache, lock.tactics) == (None, None, None)
