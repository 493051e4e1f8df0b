package server

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// CheckDirectories reports why this process could not keep a server's data where
// the configuration says: a directory is a file, cannot be written or made, or must
// exist (datadir.autocreate=false) and does not. It creates nothing, and does not
// look at what the directories hold.
func CheckDirectories(c Config) error {
	c = c.withDefaults()
	if c.Memory {
		return nil
	}
	errs := []error{c.checkDirectory("dataDir", c.DataDir)}
	if c.LogDir != c.DataDir {
		errs = append(errs, c.checkDirectory("dataLogDir", c.LogDir))
	}
	return errors.Join(errs...)
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
		if err := writable(at); err != nil {
			return fmt.Errorf("%s: this process, which runs as user %d, cannot write to %s: %w; change its owner, or choose another directory", key, os.Getuid(), at, err)
		}
		return nil
	}
}
