package proto

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// ValidatePath checks path by the rules that ZooKeeper applies to writes
// (PathUtils.validatePath): it starts with '/', doesn't end with '/' unless it is
// the root, has no empty, "." or ".." component, and none of the characters
// U+0000–001F, U+007F–009F, U+D800–F8FF, U+FFF0–FFFF. Java checks UTF-16 units,
// so every character above U+FFFF is refused as well.
func ValidatePath(path string) error {
	switch {
	case path == "" || path == NullString:
		return fmt.Errorf("path is empty")
	case path[0] != '/':
		return fmt.Errorf("path %q does not start with /", path)
	case path == "/":
		return nil
	case path[len(path)-1] == '/':
		return fmt.Errorf("path %q ends with /", path)
	}
	for rest := path[1:]; ; {
		name, more, found := strings.Cut(rest, "/")
		if err := validateName(path, name); err != nil {
			return err
		}
		if !found {
			return nil
		}
		rest = more
	}
}

// validateName checks one component of path.
func validateName(path, name string) error {
	if name == "" || name == "." || name == ".." {
		return fmt.Errorf("path %q has a component %q", path, name)
	}
	for i := 0; i < len(name); i++ {
		c := name[i]
		if c >= ' ' && c < 0x7f {
			continue
		}
		if c < utf8.RuneSelf {
			return fmt.Errorf("path %q has the character U+%04X", path, c)
		}
		return validateRunes(path, name[i:])
	}
	return nil
}

// validateRunes checks the part of a component that starts at its first non-ASCII
// byte.
func validateRunes(path, name string) error {
	for _, c := range name {
		if c < ' ' || c >= 0x7f && c <= 0x9f || c >= 0xd800 && c <= 0xf8ff || c >= 0xfff0 {
			return fmt.Errorf("path %q has the character U+%04X", path, c)
		}
	}
	return nil
}

// Parent returns the path of path's parent: "/" for the children of the root,
// "" for the root and for a path without '/'.
func Parent(path string) string {
	i := strings.LastIndexByte(path, '/')
	if i == 0 && len(path) > 1 {
		return "/"
	}
	if i < 0 {
		return ""
	}
	return path[:i]
}

// Base returns the part of path after its last '/'.
func Base(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }
