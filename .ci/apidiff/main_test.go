package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// checked returns an API with one package.
func checked(t *testing.T, path, source string) api {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "a.go", source, 0)
	if err != nil {
		t.Fatal(err)
	}
	p, err := new(types.Config).Check(path, files, []*ast.File{file}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return api{path: p}
}

// A change that breaks programs is found, also after the API was recorded, and fails unless
// it is accepted. A change that breaks none is not.
func TestIncompatible(t *testing.T) {
	const path = module + "/client"
	recorded := filepath.Join(t.TempDir(), baselineFile)
	if err := checked(t, path, "package client; func F(int) {}; type T struct{ A int }; func G() {}").write(recorded); err != nil {
		t.Fatal(err)
	}
	before, err := read(recorded)
	if err != nil {
		t.Fatal(err)
	}
	now := checked(t, path, "package client; func F(string) {}; type T struct{ A, B int }; func H() {}")
	breaks := before.incompatible(now)
	want := []string{"client: F: changed from func(int) to func(string)", "client: G: removed"}
	if !slices.Equal(breaks, want) {
		t.Fatalf("%q, want %q", breaks, want)
	}
	if err := judge(breaks, want); err != nil {
		t.Error(err)
	}
	if err := judge(breaks, want[:1]); err == nil || !strings.Contains(err.Error(), "G: removed") {
		t.Errorf("a change that isn't accepted: %v", err)
	}
	if err := judge(nil, want[:1]); err == nil || !strings.Contains(err.Error(), "match no change") {
		t.Errorf("an accepted change that isn't there: %v", err)
	}
	if gone := before.incompatible(api{}); !slices.Equal(gone, []string{"client: the package is gone"}) {
		t.Errorf("%q", gone)
	}
}

func TestPublic(t *testing.T) {
	for path, want := range map[string]bool{"client": true, "recipes/lock": true, "server/zktest/control": true, "internal/cli": false,
		"tree/internal/arena": false, "tests/kit/wait": false, "cmd/zkgo": false} {
		if public(module+"/"+path) != want {
			t.Errorf("%s: public is %v", path, !want)
		}
	}
}
