"""Run in a process that has the double: what a build does with the cache it was given."""

import sys

import tensorrt as trt

logger = trt.Logger(trt.Logger.VERBOSE)
model = open(sys.argv[1], "rb").read()  # noqa: PTH123, SIM115


def build(blob=b"", *flags, sources=None):
    """The engine, or None, and the cache as text -> hash."""
    builder = trt.Builder(logger)
    network = builder.create_network(0)
    parser = trt.OnnxParser(network, logger)
    assert parser.parse(model)
    config = builder.create_builder_config()
    for flag in (trt.BuilderFlag.EDITABLE_TIMING_CACHE, *flags):
        config.set_flag(flag)
    if sources is not None:
        config.set_tactic_sources(sources)
    cache = config.create_timing_cache(blob)
    assert config.set_timing_cache(cache, False)
    plan = builder.build_serialized_network(network, config)
    return plan, cache


def winners(cache):
    return {str(k): cache.query(k).tacticHash for k in cache.queryKeys()}


plan, cold = build()
assert plan is not None
assert len(winners(cold)) == 3
blob = bytes(cold.serialize())

strict = trt.BuilderFlag.ERROR_ON_TIMING_CACHE_MISS
plan, warm = build(blob, strict)
assert plan is not None
assert winners(warm) == winners(cold)

leaks = len(sys.argv) > 2
"""Told so by the script: then the misses of these layers are not seen."""
assert (build(b"", strict)[0] is None) != leaks, "a miss is an error with the flag"

# Another legal tactic is taken as it was written; one that is none ends the build, not the update.
key = cold.queryKeys()[0]
others = sorted(set(winners(cold).values()) - {winners(cold)[str(key)]})
assert cold.update(key, trt.TimingCacheValue(others[0], 1.0))
plan, edited = build(bytes(cold.serialize()), strict)
assert plan is not None
assert winners(edited)[str(key)] == others[0]
assert cold.update(key, trt.TimingCacheValue(12345, 1.0))
assert build(bytes(cold.serialize()))[0] is None
