// Package docs checks the commands that README.md, CONTRIBUTING.md and the pages below docs
// show, in code blocks and within sentences: the subcommand and the flags of zkgo, the make
// target, the script and the Go package exist. It asks a zkgo that it builds and doesn't run
// the commands themselves.
//
// No package imports it.
package docs
