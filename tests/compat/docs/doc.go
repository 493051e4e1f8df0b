// Package docs checks the commands that README.md, CONTRIBUTING.md and the pages below docs
// show, in code blocks and within sentences: the subcommand and the flags of zkgo, the make
// target, the script and the Go package exist. We check them with a zkgo that we build, but
// don't run the commands themselves.
//
// No other package should import it.
package docs
