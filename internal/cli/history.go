package cli

import (
	"fmt"
	"os"
	"strings"
)

// historyLines is the maximum number of lines kept.
const historyLines = 1000

// lineHistory holds the typed lines, oldest first, in memory and in a file.
type lineHistory struct {
	lines []string
	file  string
}

// openHistory reads the history file, or creates it so that only its owner can read it. We refuse a
// special file and a file that is too large. On an error, we keep the history in memory only.
func openHistory(path string) (*lineHistory, error) {
	h := &lineHistory{}
	if path == "" || path == os.DevNull {
		return h, nil
	}
	text, err := readRegular(path, maxHistory)
	if err != nil && !os.IsNotExist(err) {
		return h, err
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimRight(line, "\r\n"); line != "" {
			h.lines = append(h.lines, line)
		}
	}
	if len(h.lines) > 2*historyLines {
		h.lines = h.lines[len(h.lines)-historyLines:]
		if err := os.WriteFile(path, []byte(strings.Join(h.lines, "\n")+"\n"), 0o600); err != nil {
			return h, err
		}
	}
	h.file = path
	return h, h.append("")
}

// Add adds a line, unless it repeats the last line or is an addauth, which may
// contain a password. It implements term.History.
func (h *lineHistory) Add(line string) {
	words := split(line)
	if strings.TrimSpace(line) == "" || words[0] == "addauth" || len(h.lines) > 0 && h.lines[len(h.lines)-1] == line {
		return
	}
	h.lines = append(h.lines, line)
	if h.file != "" && h.append(line+"\n") != nil {
		h.file = "" // we ignore the error: the history is only a convenience
	}
}

func (h *lineHistory) append(text string) error {
	file, err := os.OpenFile(h.file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err := file.WriteString(text); err != nil {
		file.Close()
		return fmt.Errorf("%s: %w", h.file, err)
	}
	return file.Close()
}

// Len implements term.History.
func (h *lineHistory) Len() int { return len(h.lines) }

// At returns a line; 0 is the newest. It implements term.History.
func (h *lineHistory) At(i int) string { return h.lines[len(h.lines)-1-i] }
