package inspect

import (
	"fmt"
)

func listZooKeeper(d Dirs, verify bool) ([]File, error) { return nil, nil }

func openFile(path string) (*Image, error) {
	return nil, fmt.Errorf("%s is no snapshot", path)
}

func logZooKeeper(paths []string, f Filter, each func(*Transaction) error) error {
	return fmt.Errorf("%s is no log", paths[0])
}
