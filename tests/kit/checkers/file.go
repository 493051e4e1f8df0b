package checkers

import (
	"fmt"
	"os"

	"github.com/zkgo/zkgo/tests/kit/history"
)

// CheckFile runs every checker over a history file.
func CheckFile(name string, o Options) (*Verdict, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	h, err := history.Read(f)
	if err != nil {
		return nil, fmt.Errorf("checkers: %s: %w", name, err)
	}
	return Check(h, o), nil
}
