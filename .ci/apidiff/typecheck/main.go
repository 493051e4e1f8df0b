// Command typecheck checks the types of a module's packages and tests, for the system and
// processor that GOOS and GOARCH name. It reads the sources of all dependencies and compiles
// nothing: "go vet" first compiles what the packages import.
//
//	GOOS=windows go run ./typecheck DIRECTORY
//
// It exits with status 1 if a package has an error.
package main

import (
	"fmt"
	"os"

	"golang.org/x/tools/go/packages"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: typecheck DIRECTORY")
		os.Exit(2)
	}
	// The functions of dependencies are not checked, only what they declare.
	mode := packages.NeedName | packages.NeedCompiledGoFiles | packages.NeedImports | packages.NeedDeps | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesSizes
	all, err := packages.Load(&packages.Config{Mode: mode, Dir: os.Args[1], Tests: true}, "./...")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	files, errors := 0, 0
	for _, p := range all {
		files += len(p.Syntax)
		errors += len(p.Errors)
		for _, err := range p.Errors {
			fmt.Println(err)
		}
	}
	fmt.Printf("%d packages and tests, %d files, %d errors\n", len(all), files, errors)
	if files == 0 || errors > 0 {
		os.Exit(1)
	}
}
