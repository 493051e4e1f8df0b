package server

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// CheckDirectories reports why this process could not keep a server's data where the
// configuration says: a directory is a file, can't be written or created, or is missing
// although it must exist (datadir.autocreate=false); or the audit log can't be written.
// It creates nothing and doesn't read what the directories hold.
func CheckDirectories(c Config) error {
	c = c.withDefaults()
	if c.Memory {
		return nil
	}
	errs := []error{c.checkDirectory("dataDir", c.DataDir)}
	if c.Log.Dir != c.DataDir {
		errs = append(errs, c.checkDirectory("dataLogDir", c.Log.Dir))
	}
	return errors.Join(append(errs, c.checkAuditFile())...)
}

// checkAuditFile reports why the audit log couldn't be opened.
func (c *Config) checkAuditFile() error {
	if c.Audit == nil || c.Audit.Sink != nil || c.Audit.File.Path == "" {
		return nil
	}
	file := c.Audit.File.Path
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		file = filepath.Dir(file)
		info, err = os.Stat(file)
		if err == nil && !info.IsDir() {
			return fmt.Errorf("audit.file: %s is no directory", file)
		}
	case err == nil && info.IsDir():
		return fmt.Errorf("audit.file: %s is a directory, and a file is needed", file)
	}
	if err == nil {
		err = writable(file, info.IsDir())
	}
	if err != nil {
		return fmt.Errorf("audit.file: %s: %w; make its directory, or choose another file", c.Audit.File.Path, err)
	}
	return nil
}

func (c *Config) checkDirectory(key, dir string) error {
	for at := dir; ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		switch {
		case errors.Is(err, fs.ErrNotExist) && c.NoAutocreate:
			return fmt.Errorf("%s: %s is missing, and is not to be made (datadir.autocreate=false); is its volume mounted?", key, at)
		case errors.Is(err, fs.ErrNotExist) && filepath.Dir(at) != at:
			continue
		case err != nil:
			return fmt.Errorf("%s: %w", key, err)
		case !info.IsDir():
			return fmt.Errorf("%s: %s is a file, and a directory is needed", key, at)
		}
		if err := writable(at, true); err != nil {
			return fmt.Errorf("%s: this process, which runs as user %d, cannot write to %s: %w; change its owner, or choose another directory", key, os.Getuid(), at, err)
		}
		return nil
	}
}
