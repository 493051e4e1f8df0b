package terminal

import (
	"fmt"
	"os"
	"strings"
)

// historyLines is the maximum number of lines kept.
const historyLines = 1000

// History keeps the typed lines, oldest first, in memory and in a file.
type History struct {
	lines []string
	file  string
}

// OpenHistory reads the history file, or creates it so that only its owner can read it. We
// refuse a special file and a file that is too large. On an error, we keep the history in
// memory only.
func OpenHistory(path string) (*History, error) {
	h := &History{}
	if path == "" || path == os.DevNull {
		return h, nil
	}
	text, err := ReadRegular(path, maxHistory)
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
func (h *History) Add(line string) {
	words := Split(line)
	if strings.TrimSpace(line) == "" || words[0] == "addauth" || len(h.lines) > 0 && h.lines[len(h.lines)-1] == line {
		return
	}
	h.lines = append(h.lines, line)
	if h.file != "" && h.append(line+"\n") != nil {
		h.file = "" // we ignore the error: the history is only a convenience
	}
}

func (h *History) append(text string) error {
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
func (h *History) Len() int { return len(h.lines) }

// At returns a line; 0 is the newest. It implements term.History.
func (h *History) At(i int) string { return h.lines[len(h.lines)-1-i] }

// Search finds old lines that contain the text typed before the search began.
type Search struct {
	Lines  *History
	wanted string
	shown  string // the result of the last call
	at     int
}

// Next returns the next older matching line.
func (s *Search) Next(line string) (string, int, bool) {
	if line != s.shown || s.at == 0 {
		s.wanted, s.at = line, 0
	}
	for ; s.at < s.Lines.Len(); s.at++ {
		if old := s.Lines.At(s.at); strings.Contains(old, s.wanted) && old != line {
			s.at++
			s.shown = old
			return old, len(old), true
		}
	}
	s.at = 0
	return line, len(line), true
}
