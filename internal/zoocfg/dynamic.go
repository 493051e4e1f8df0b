package zoocfg

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf16"

	"github.com/zkgo/zkgo/internal/smallfile"
)

// The membership in the configuration file. If reconfig is allowed, a server of an
// ensemble keeps its file in step with /zookeeper/config, like ZooKeeper: the server lines move to
// a separate file, named after the version,
//
//	zoo.cfg                      … dynamicConfigFile=/etc/zoo.cfg.dynamic.100000007
//	zoo.cfg.dynamic.100000007    server.1=…
//	zoo.cfg.bak                  the file before its server lines were moved out
//
// so that a restart begins with the last membership that this server saw.

// WriteMembership writes the dynamic file of a membership, the text of /zookeeper/config, and
// makes the static file at path name it, unless both are up to date. written is the dynamic
// file that the static file names so far, empty if the static file itself has server lines. self is
// the number of this server. WriteMembership returns the file that the static file names now.
func WriteMembership(path string, text []byte, written string, self uint64) (string, error) {
	lines, version, ok := bytes.Cut(text, []byte("\nversion="))
	if !ok {
		return written, fmt.Errorf("the membership has no version: %q", text)
	}
	file := path + ".dynamic." + string(version)
	if file == written {
		if have, err := os.ReadFile(file); err == nil && bytes.Equal(bytes.TrimSpace(have), lines) {
			return file, nil
		}
	}
	if string(version) == "0" {
		return written, nil // before the first leader that allows reconfig
	}
	if written == "" {
		if err := Backup(path); err != nil {
			return written, err
		}
	}
	if err := WriteFile(file, lines); err != nil {
		return written, err
	}
	own := fmt.Sprintf("server.%d=", self)
	client := false // the dynamic file contains the client port
	for line := range strings.Lines(string(lines)) {
		client = client || strings.HasPrefix(line, own) && strings.Contains(line, ";")
	}
	return file, PointAt(path, file, client)
}

// PointAt sets dynamic as the dynamicConfigFile of the configuration file at path,
// and removes the lines that moved to dynamic: the server, group and weight lines.
// With client it also removes the plaintext client port, which would contradict the
// one in the server's own line. All other lines stay unchanged and in place,
// including comments; ZooKeeper rewrites the whole file.
func PointAt(path, dynamic string, client bool) error {
	text, err := smallfile.Read(path)
	if err != nil {
		return err
	}
	out, err := pointAt(string(text), dynamic, client)
	if err != nil {
		return inFile(err, path)
	}
	if out == string(text) {
		return nil
	}
	return WriteFile(path, []byte(out))
}

func pointAt(text, dynamic string, client bool) (string, error) {
	var b strings.Builder
	r := lineReader{text: text, line: 1}
	line := "dynamicConfigFile=" + escape(dynamic)
	if p, err := splitProperty(line); err != nil || trim(p.value) != dynamic {
		return "", &Error{Key: "dynamicConfigFile", Msg: fmt.Sprintf("%q cannot be a value of a properties file, "+
			"which has no blanks at the ends and no bytes that are not UTF-8", dynamic)}
	}
	placed := false
	for from := 0; ; from = r.pos {
		more := r.next()
		if !more {
			b.WriteString(text[from:])
			break
		}
		p, err := splitProperty(r.logical)
		if err != nil {
			return "", &Error{Line: r.start, Msg: err.Error()}
		}
		key := trim(p.key)
		out := isMember(key) || key == "dynamicConfigFile" || client && (key == "clientPort" || key == "clientPortAddress")
		if !out {
			b.WriteString(text[from:r.pos])
			continue
		}
		b.WriteString(comments(text[from:r.pos]))
		if !placed && key != "clientPort" && key != "clientPortAddress" {
			b.WriteString(line + "\n")
			placed = true
		}
	}
	all := b.String()
	if !placed {
		if all != "" && !strings.HasSuffix(all, "\n") {
			all += "\n"
		}
		all += line + "\n"
	}
	return all, nil
}

// comments returns the blank lines and comments at the start of a piece of a file. The piece ends
// with one property.
func comments(piece string) string {
	at := 0
	for at < len(piece) {
		end := strings.IndexByte(piece[at:], '\n') + 1
		if end == 0 {
			break
		}
		if l := strings.TrimLeft(piece[at:at+end], " \t\f"); strings.TrimSpace(l) != "" && l[0] != '#' && l[0] != '!' {
			break
		}
		at += end
	}
	return piece[:at]
}

// escape escapes a value for a properties file, which is ASCII: properties decodes
// other bytes as ISO-8859-1.
func escape(value string) string {
	var b strings.Builder
	for i, u := range utf16.Encode([]rune(value)) {
		switch {
		case u == '\\', u == ' ' && i == 0:
			b.WriteString(`\` + string(rune(u)))
		case u < ' ' || u > '~':
			fmt.Fprintf(&b, `\u%04X`, u)
		default:
			b.WriteByte(byte(u))
		}
	}
	return b.String()
}

// Backup copies a configuration file to a file with the suffix .bak.
func Backup(path string) error {
	text, err := smallfile.Read(path)
	if err != nil {
		return err
	}
	return WriteFile(path+".bak", text)
}

// WriteFile replaces a file atomically and durably, and keeps its permissions.
func WriteFile(path string, text []byte) (err error) {
	mode := fs.FileMode(0o644)
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".tmp*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	_, err = f.Write(text)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
