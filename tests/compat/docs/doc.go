// Package docs runs the commands that README.md and the pages below docs show, in the order
// of each page, in a directory of their own. Ports, hosts and paths are replaced. Commands
// that can't run in a test are in a table with the reason. For every command, also for
// those and for the ones within sentences, it checks that the subcommand and the flags of
// zkgo, the make target, the script and the Go package exist.
//
// It needs bash. What needs another tool that is missing is skipped, unless ZKGO_REQUIRE=1
// is set. No package imports it.
package docs
