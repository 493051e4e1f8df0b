// Command chart renders the Helm chart with value files, and checks the result: it reads every
// object into the types of its API, where an unknown or misspelt field is an error, and checks
// that all references between the objects resolve.
//
//	chart CHART VALUES...       prints the objects of each value file as JSON
//
// It is a separate module, so that zkgo doesn't depend on Helm and the types of Kubernetes.
package main

import (
	"encoding/json"
	"fmt"
	"os"
)

func main() {
	if err := run(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(dir string, files []string) error {
	out := map[string][]any{}
	for _, file := range files {
		values, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		objects, err := render(dir, release{"zk", "test"}, values)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		for _, o := range objects {
			out[file] = append(out[file], o.typed)
		}
	}
	return json.NewEncoder(os.Stdout).Encode(out)
}
