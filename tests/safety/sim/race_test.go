//go:build race

package sim

const raced = true // everything is ten times as slow
