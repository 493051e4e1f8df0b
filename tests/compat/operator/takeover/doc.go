// Package takeover lets zkgo processes follow a real Apache ZooKeeper ensemble and replace it while
// clients write, hold locks and wait for watches, and checks every write, lock, session and stat
// afterwards. TestKilled kills, stops and cuts off servers of both sides at every step. TestPlanted
// shows that the checks find mistakes.
//
// The tests need ZKGO_REQUIRE=1 and ZKGO_LIVE=1; then nothing is skipped. -old runs them
// against another release. TestKilled needs root: each of its servers has a network namespace.
package takeover
