package main

import (
	"context"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/zkgo/zkgo/internal/offline/backup"
	"github.com/zkgo/zkgo/internal/offline/zkfiles"
	"github.com/zkgo/zkgo/internal/smallfile"
	"github.com/zkgo/zkgo/internal/zoocfg"
)

// standardInput is the argument that means the standard input instead of a file.
const standardInput = "-"

// inputName is the name of the standard input in messages.
const inputName = "the standard input"

// stdin returns the standard input of a command. Reading it ends with the command's
// context, because an interrupt only ends the context.
func stdin(cmd *cobra.Command) io.Reader {
	return &input{ended: cmd.Context().Done(), from: cmd.InOrStdin()}
}

// input is a reader that doesn't wait for from when ended is closed.
type input struct {
	ended <-chan struct{}
	from  io.Reader
	left  []byte // read and not returned yet
	err   error  // after left
}

// Read implements io.Reader.
func (in *input) Read(p []byte) (int, error) {
	if len(in.left) == 0 && in.err == nil {
		type part struct {
			data []byte
			err  error
		}
		read := make(chan part, 1)
		go func() { // without a buffer of the caller, which may be gone when the read returns
			b := make([]byte, 64<<10)
			n, err := in.from.Read(b)
			read <- part{b[:n], err}
		}()
		select {
		case <-in.ended:
			in.err = context.Canceled
		case got := <-read:
			in.left, in.err = got.data, got.err
		}
	}
	if len(in.left) == 0 {
		return 0, in.err
	}
	n := copy(p, in.left)
	in.left = in.left[n:]
	return n, nil
}

// parseConfig reads a zoo.cfg, from in if its name is "-".
func parseConfig(name string, in io.Reader, opts ...zoocfg.Option) (*zoocfg.Config, error) {
	if name != standardInput {
		return zoocfg.Parse(name, opts...)
	}
	text, err := smallfile.ReadFrom(inputName, in)
	if err != nil {
		return nil, err
	}
	return zoocfg.ParseText(inputName, string(text), opts...)
}

// loadBackup loads a backup or a snapshot, from in if its name is "-". It returns the
// name for messages.
func loadBackup(path string, in io.Reader) (name string, c *backup.Content, err error) {
	if path == standardInput {
		c, err = backup.Read(inputName, in, 0, zkfiles.Limits{})
		return inputName, c, err
	}
	c, err = backup.Load(path)
	return path, c, err
}

// spool copies in to a temporary file, for a command that reads it twice. The caller
// must call remove.
func spool(in io.Reader) (path string, remove func(), err error) {
	f, err := os.CreateTemp("", "zkgo-stdin-*")
	if err != nil {
		return "", nil, err
	}
	remove = func() { os.Remove(f.Name()) } //nolint:errcheck // a temporary file
	_, err = io.Copy(f, in)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		remove()
		return "", nil, err
	}
	return f.Name(), remove, nil
}

// needsFile reports whether a flag names a file or a directory that can't be the standard
// input.
func needsFile(cmd *cobra.Command, flag string) bool {
	switch flag {
	case "tls-ca", "tls-cert", "tls-key", "tls-password-file", "client-configuration", "history",
		"data-dir", "data-log-dir", "from-log-dir", "to-zookeeper", "compare":
		return true
	case "from":
		return cmd.Name() == "import" // backup's --server is a URL
	}
	return false
}

// realFiles returns a usage error if a flag that needs a real file is "-".
func realFiles(cmd *cobra.Command) (err error) {
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		if err != nil || !needsFile(cmd, flag.Name) {
			return
		}
		values := []string{flag.Value.String()}
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		if slices.Contains(values, standardInput) {
			err = usagef("--%s -: want a file or directory name; the standard input is not supported (for a file named -, use ./-)", flag.Name)
		}
	})
	return err
}

// named returns a usage error if a path among args is "-", in a command that opens the
// files by name.
func named(cmd *cobra.Command, why string, args ...string) error {
	if slices.Contains(args, standardInput) {
		return usagef("%s -: want a file or directory name, not the standard input, because %s (for a file named -, use ./-)", cmd.CommandPath(), why)
	}
	return nil
}

// secretText returns the value of a secret flag. "@file" means the content of a file, without the
// end of its line.
func secretText(flag, text string) (string, error) {
	file, ok := strings.CutPrefix(text, "@")
	if text == standardInput || ok && file == standardInput {
		return "", usagef("%s %s: the standard input is for data and commands, not for secrets: use @FILE", flag, text)
	}
	if !ok {
		return text, nil
	}
	data, err := smallfile.Read(file)
	if err != nil {
		return "", usagef("%s: %w", flag, err)
	}
	return strings.TrimRight(string(data), "\r\n"), nil
}
