package main

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"slices"
)

// backupExtension is the extension of the files that --keep counts.
const backupExtension = ".zkb"

// checkKeep checks --keep before a backup is taken.
func checkKeep(keep int, path string) error {
	switch {
	case keep < 0:
		return usagef("--keep %d: want the number of backups to keep; 0 keeps all", keep)
	case keep > 0 && filepath.Ext(path) != backupExtension:
		return usagef("--keep counts files whose names end in %s, and %s would not be one", backupExtension, path)
	}
	return nil
}

// removeOlder removes all backups in the directory of path but the newest. It never removes
// path itself.
func removeOlder(keep int, path string) error {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return err
	}
	var others []os.FileInfo
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() || filepath.Ext(e.Name()) != backupExtension || e.Name() == filepath.Base(path) {
			continue
		}
		others = append(others, info)
	}
	slices.SortFunc(others, func(a, b os.FileInfo) int {
		return cmp.Or(b.ModTime().Compare(a.ModTime()), cmp.Compare(b.Name(), a.Name()))
	})
	var errs []error
	for _, info := range others[min(keep-1, len(others)):] {
		errs = append(errs, os.Remove(filepath.Join(filepath.Dir(path), info.Name())))
	}
	return errors.Join(errs...)
}
