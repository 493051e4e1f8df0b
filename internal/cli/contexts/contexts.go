// Package contexts reads the user's configuration file, in which settings of connections
// have names:
//
//	current-context: prod
//	contexts:
//	  prod:
//	    server: zk1:2281,zk2:2281,zk3:2281
//	    tls-ca: ca.pem
//	    auth: "@prod.auth"
//
// A key is the name of a flag. The package doesn't know the flags: its caller passes the
// keys that are valid. It imports internal/spelling.
package contexts

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/zkgo/zkgo/internal/spelling"
)

// maxFile limits the size of the file.
const maxFile = 1 << 20

// File is a configuration file that was read.
type File struct {
	// Path is the file's absolute path.
	Path string
	// Current is the name of the context that is used if none is named; "" means none.
	Current string

	contexts map[string]map[string][]string
	document yaml.Node
}

// Path returns the path of the configuration file: the value of ZKGO_CONFIG, or zkgo/config.yaml in
// the user's configuration directory.
func Path(getenv func(string) string) (string, error) {
	if path := getenv("ZKGO_CONFIG"); path != "" {
		return filepath.Abs(path)
	}
	if dir := getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "zkgo", "config.yaml"), nil
	}
	if runtime.GOOS == "windows" {
		if dir := getenv("AppData"); dir != "" {
			return filepath.Join(dir, "zkgo", "config.yaml"), nil
		}
	}
	home := getenv("HOME")
	if home == "" {
		return "", nil
	}
	return filepath.Join(home, ".config", "zkgo", "config.yaml"), nil
}

// Load reads the file at path. It returns a file without contexts if there is none, or if
// path is "". Keys are the valid settings, and secrets the settings with credentials. Other users
// must not be able to read a file with a credential, unless the credential is "@" and the name of a
// file. No other user may write the file.
func Load(path string, keys, secrets []string) (*File, error) {
	f := &File{Path: path}
	if path == "" {
		return f, nil
	}
	in, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return nil, err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(in, maxFile+1))
	switch {
	case err != nil:
		return nil, err
	case len(text) > maxFile:
		return nil, fmt.Errorf("%s: larger than 1 MiB", path)
	}
	if err := f.parse(text, keys); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, f.private(info.Mode(), secrets)
}

// private returns an error if other users can write the file, and so choose the servers or
// a command, or if they can read it and it contains credentials.
func (f *File) private(mode fs.FileMode, secrets []string) error {
	switch {
	case runtime.GOOS == "windows" || mode.Perm()&0o077 == 0:
		return nil
	case mode.Perm()&0o022 != 0:
		return fmt.Errorf("%s: other users can write to the file (mode %04o). Run: chmod 600 %s", f.Path, mode.Perm(), f.Path)
	}
	for _, name := range f.Names() {
		for _, key := range secrets {
			if slices.ContainsFunc(f.contexts[name][key], func(v string) bool { return v != "" && v[0] != '@' }) {
				return fmt.Errorf("%s: the context %s contains credentials (%s), but other users can read the file (mode %04o). Run: chmod 600 %s; or move the credentials to another file and use @FILE",
					f.Path, name, key, mode.Perm(), f.Path)
			}
		}
	}
	return nil
}

// parse reads the document.
func (f *File) parse(text []byte, keys []string) error {
	if len(bytes.TrimSpace(text)) == 0 {
		return nil
	}
	if err := yaml.Unmarshal(text, &f.document); err != nil {
		return err
	}
	var top map[string]yaml.Node
	if err := f.document.Decode(&top); err != nil {
		return err
	}
	for key, node := range top {
		switch key {
		case "current-context":
			if err := node.Decode(&f.Current); err != nil {
				return fmt.Errorf("current-context: %w", err)
			}
		case "contexts":
		default:
			return fmt.Errorf("line %d: unknown key %q%s", node.Line, key, spelling.Hint(key, []string{"current-context", "contexts"}))
		}
	}
	node, ok := top["contexts"]
	if !ok {
		return nil
	}
	var all map[string]map[string]yaml.Node
	if err := node.Decode(&all); err != nil {
		return fmt.Errorf("contexts: want a name, and settings below it: %w", err)
	}
	f.contexts = map[string]map[string][]string{}
	for name, settings := range all {
		values := map[string][]string{}
		for key, node := range settings {
			if !slices.Contains(keys, key) {
				return fmt.Errorf("line %d: the context %s has the unknown setting %q%s", node.Line, name, key, spelling.Hint(key, keys))
			}
			list, err := texts(&node)
			if err != nil {
				return fmt.Errorf("line %d: %s of the context %s: %w", node.Line, key, name, err)
			}
			values[key] = list
		}
		f.contexts[name] = values
	}
	return nil
}

// texts returns a scalar or the scalars of a list.
func texts(node *yaml.Node) ([]string, error) {
	switch node.Kind {
	case yaml.ScalarNode:
		return []string{node.Value}, nil
	case yaml.SequenceNode:
		list := []string{}
		for _, item := range node.Content {
			if item.Kind != yaml.ScalarNode {
				return nil, errors.New("want a list of strings")
			}
			list = append(list, item.Value)
		}
		return list, nil
	}
	return nil, errors.New("want a string or a list of strings")
}

// Names returns the names of the contexts, sorted.
func (f *File) Names() []string {
	names := make([]string, 0, len(f.contexts))
	for name := range f.contexts {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Context returns the settings of a context, and an error that suggests another name if
// there is no such context.
func (f *File) Context(name string) (map[string][]string, error) {
	if c, ok := f.contexts[name]; ok {
		return c, nil
	}
	switch names := f.Names(); {
	case f.Path == "":
		return nil, fmt.Errorf("no context %q: neither HOME nor ZKGO_CONFIG is set", name)
	case len(names) == 0:
		return nil, fmt.Errorf("no context %q: %s has no contexts", name, f.Path)
	default:
		return nil, fmt.Errorf("no context %q in %s%s", name, f.Path, spelling.Hint(name, names))
	}
}

// Beside returns the path that a relative path in the file means: one in the file's
// directory.
func (f *File) Beside(path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(f.Path), path)
}

// Use makes a context the current one, and leaves the rest of the file as it is, with its
// comments. The file is replaced as a whole.
func (f *File) Use(name string) error {
	if _, err := f.Context(name); err != nil {
		return err
	}
	root := f.document.Content[0]
	found := false
	for i := 0; i+1 < len(root.Content); i += 2 {
		if root.Content[i].Value == "current-context" {
			root.Content[i+1].SetString(name)
			found = true
		}
	}
	if !found {
		key, value := new(yaml.Node), new(yaml.Node)
		key.SetString("current-context")
		value.SetString(name)
		root.Content = append([]*yaml.Node{key, value}, root.Content...)
	}
	var b bytes.Buffer
	out := yaml.NewEncoder(&b)
	out.SetIndent(2)
	if err := errors.Join(out.Encode(&f.document), out.Close()); err != nil {
		return err
	}
	f.Current = name
	return f.write(b.Bytes())
}

// write replaces the file, or the file that it links to, and keeps its mode.
func (f *File) write(text []byte) error {
	path, err := filepath.EvalSymlinks(f.Path)
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	fresh, err := os.CreateTemp(filepath.Dir(path), ".config-*")
	if err != nil {
		return err
	}
	_, err = fresh.Write(text)
	err = errors.Join(err, fresh.Chmod(info.Mode().Perm()), fresh.Sync(), fresh.Close())
	if err == nil {
		err = os.Rename(fresh.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(fresh.Name()))
	}
	return nil
}
