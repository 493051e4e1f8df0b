package recipe

import "strings"

// Parent returns the parent of path.
func Parent(path string) string {
	if i := strings.LastIndexByte(path, '/'); i > 0 {
		return path[:i]
	}
	return "/"
}

// Join returns the path of the child name of dir.
func Join(dir, name string) string { return strings.TrimSuffix(dir, "/") + "/" + name }
