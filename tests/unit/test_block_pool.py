"""The simulated KV cache: nothing is lost, nothing is held twice, the oldest idle block goes first."""

from hypothesis import given
from hypothesis import strategies as st

from tidegauge.demo.blocks import BlockPool, Holding


def filled(pool, owner, session, full, own):
    """A holding of `full` published and `own` private blocks."""
    holding = pool.hold(owner, session, pool.cached(session, full))
    assert pool.grow(holding, full - holding.shared + own)
    pool.publish(holding, full)
    return holding


class TestAccounting:
    def test_the_null_block_is_never_usable(self):
        """A pool of 10 blocks can hold 9, and says it is empty before and full after."""
        pool = BlockPool(10, caching=True)
        assert 0.0 == pool.usage
        holding = pool.hold("a", "s", 0)
        assert pool.grow(holding, 9)
        assert 1.0 == pool.usage
        assert not pool.grow(holding, 1)

    def test_cached_blocks_that_nobody_holds_count_as_free(self):
        """A finished request leaves its prefix in the cache and the usage at 0."""
        pool = BlockPool(10, caching=True)
        pool.release(filled(pool, "a", "s", 5, 2))
        assert 0.0 == pool.usage
        assert 5 == pool.cached("s", 9)

    def test_a_prefix_held_by_two_requests_is_counted_once(self):
        """The second request of a session adds only its own blocks."""
        pool = BlockPool(20, caching=True)
        first = filled(pool, "a", "s", 4, 1)
        second = filled(pool, "b", "s", 4, 3)
        assert 19 - 4 - 1 - 3 == pool.free
        pool.release(first)
        assert 19 - 4 - 3 == pool.free
        pool.release(second)
        assert 19 == pool.free

    def test_a_block_that_the_session_has_already_stays_a_private_duplicate(self):
        """A request that computes again what is cached (its last block) adds nothing to the session's run."""
        pool = BlockPool(20, caching=True)
        pool.release(filled(pool, "a", "s", 4, 0))
        again = pool.hold("b", "s", 3)
        assert pool.grow(again, 1)
        pool.publish(again, 4)
        assert (3, 1) == (again.shared, again.own)
        assert 19 - 4 - 1 == pool.free - 1  # three pinned, one private, the fourth cached block idle
        pool.release(again)
        assert (19, 4) == (pool.free, pool.cached("s", 9))

    @given(
        st.lists(
            st.tuples(st.integers(0, 2), st.integers(0, 5), st.integers(0, 4), st.booleans()), min_size=1, max_size=40
        )
    )
    def test_free_and_held_blocks_add_up(self, moves):
        """Whatever requests come and go, free + held = usable, and nothing goes below 0."""
        pool = BlockPool(17, caching=True)
        held: list[Holding] = []
        for number, (session, full, own, leave) in enumerate(moves):
            if leave and held:
                pool.release(held.pop(own % len(held)))
            name = f"s{session}"
            shared = pool.cached(name, full)
            if pool.fits(name, shared, full - shared + own):
                held.append(filled(pool, f"r{number}", name, full, own))
            prefixes = sum(max(h.shared for h in held if h.session == s) for s in {h.session for h in held})
            assert pool.usable == pool.free + prefixes + sum(h.own for h in held)
            assert pool.free >= 0
            assert pool.free == sum(pool._idle.values())
        for holding in held:
            pool.release(holding)
        assert pool.usable == pool.free


class TestEviction:
    def test_the_session_idle_for_longest_loses_its_prefix_first(self):
        """Of two idle sessions the older one is evicted; touching it again saves it."""
        pool = BlockPool(13, caching=True)
        pool.release(filled(pool, "a", "old", 4, 0))
        pool.release(filled(pool, "b", "new", 6, 0))
        pool.release(filled(pool, "c", "old", 4, 0))
        pool.grow(pool.hold("d", "other", 0), 2 + 5)
        assert (4, 1) == (pool.cached("old", 9), pool.cached("new", 9))

    def test_a_prefix_is_eaten_from_its_tail(self):
        """After a partial eviction the head of the prefix is still found."""
        pool = BlockPool(11, caching=True)
        pool.release(filled(pool, "a", "s", 7, 0))
        pool.grow(pool.hold("b", "other", 0), 3 + 3)
        assert 4 == pool.cached("s", 9)

    def test_what_a_request_computed_beyond_its_prefix_goes_before_the_prefix(self):
        """Private blocks of a finished request are evicted before the prefix it left."""
        pool = BlockPool(9, caching=True)
        pool.release(filled(pool, "a", "s", 3, 5))
        pool.grow(pool.hold("b", "other", 0), 5)
        assert 3 == pool.cached("s", 9)

    def test_held_blocks_are_never_evicted(self):
        """A pool whose free blocks are used up refuses rather than take a held prefix."""
        pool = BlockPool(9, caching=True)
        filled(pool, "a", "s", 5, 1)
        other = pool.hold("b", "other", 0)
        assert not pool.grow(other, 3)
        assert pool.grow(other, 2)
        assert 5 == pool.cached("s", 9)

    def test_without_caching_nothing_is_found_again(self):
        """With prefix caching off a session's second request finds nothing."""
        pool = BlockPool(9, caching=False)
        pool.release(filled(pool, "a", "s", 5, 1))
        assert 0 == pool.cached("s", 5)
        assert 8 == pool.free
