// Package docs checks what README.md, CONTRIBUTING.md and the pages below docs show.
//
//   - Every command, in code blocks and within sentences, names a subcommand, flags, a make
//     target, a script and Go packages that exist (TestCommandsExist).
//   - The commands of code blocks run, page by page, on the servers that the page speaks of
//     (TestCommandsRun). The table in table_test.go says which ones run in another form, and
//     which ones can't run in a test and why.
//   - The Go code compiles (TestGoCompiles). Python and Java code of the README is code that
//     the tests of testserver run (TestExcerpts).
//
// No other package should import it.
package docs
