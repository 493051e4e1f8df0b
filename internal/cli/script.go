package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/internal/cli/terminal"
)

// Command runs one command like Run, prints its error to the error stream, and returns the exit
// code.
func (s *Shell) Command(ctx context.Context, args []string) int {
	code, _ := s.told(s.written(s.Run(ctx, args)))
	s.events.flush()
	return code
}

// Line runs one line as zkCli.sh's prompt would, prints its error to the error
// stream, and returns the exit code. quit reports whether the line ends the shell.
func (s *Shell) Line(ctx context.Context, text string) (code int, quit bool) {
	words := terminal.Split(text)
	if len(words) == 0 {
		return 0, false
	}
	s.history = append(s.history, text)
	code, quit = s.told(s.written(s.Run(ctx, words)))
	s.events.flush()
	return code, quit
}

// told prints an error, and returns its exit code and whether it ends the shell.
func (s *Shell) told(err error) (code int, quit bool) {
	if err == nil {
		return 0, false
	}
	if errors.Is(err, errQuit) {
		return 0, true
	}
	if text := sentence(err); text != "" {
		if s.lacksChroot(err) {
			text += " (the chroot " + s.chroot + " may be missing)"
		}
		fmt.Fprintln(s.cfg.Err, text)
	}
	if exit := (*Exit)(nil); errors.As(err, &exit) {
		return exit.Code, false
	}
	if wrongPath(err) != nil {
		return codeUsage, false
	}
	return codeFailed, false
}

// lacksChroot reports whether an error says that the root of a session with a chroot
// does not exist.
func (s *Shell) lacksChroot(err error) bool {
	e := (*client.Error)(nil)
	return s.chroot != "" && errors.As(err, &e) && e.Code == client.ErrNoNode && e.Path == "/"
}

// Script runs the lines of a text until its end, quit, or the end of ctx. It
// continues after a failed line unless stop is true. It returns the exit code of the
// last line that failed. If ctx ends during a read, Script returns without waiting
// for the read.
func (s *Shell) Script(ctx context.Context, text io.Reader, stop bool) (code int) {
	s.reading = true
	lines, failed := scan(ctx, text)
	for {
		select {
		case <-ctx.Done():
			return max(code, 1)
		case line, ok := <-lines:
			if !ok {
				if err := *failed; err != nil {
					fmt.Fprintf(s.cfg.Err, "reading the script: %v\n", err)
					return 1
				}
				return code
			}
			lineCode, quit := s.Line(ctx, line)
			if lineCode != 0 {
				code = lineCode
			}
			if quit || lineCode != 0 && stop {
				return code
			}
		}
	}
}

// longestLine is the maximum length of a script's line.
const longestLine = 16 << 20

// scan reads lines in its own goroutine, because we can't interrupt a read. The error is
// valid after the channel is closed.
func scan(ctx context.Context, text io.Reader) (lines <-chan string, failed *error) {
	ch, failed := make(chan string), new(error)
	go func() {
		defer close(ch)
		scanner := bufio.NewScanner(text)
		scanner.Buffer(nil, longestLine)
		for first := true; scanner.Scan(); first = false {
			line := scanner.Text()
			if first {
				line = strings.TrimPrefix(line, "\ufeff") // a byte order mark, which editors on Windows add
			}
			select {
			case ch <- line:
			case <-ctx.Done():
				return
			}
		}
		*failed = scanner.Err()
	}()
	return ch, failed
}
