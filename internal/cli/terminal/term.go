package terminal

// Term describes an output terminal. The zero Term is a file or a pipe.
type Term struct {
	// Width is the number of columns; 0 means that the output isn't a terminal.
	Width int
	// Height is the number of lines.
	Height int
	// Colour enables colours.
	Colour bool
}

// Style is the style of a text on a terminal.
type Style string

// The styles.
const (
	Faint Style = "2"
	Bold  Style = "1"
	Path  Style = "36"
	Good  Style = "32"
	Bad   Style = "31"
)

// Paint returns text with a style if the terminal has colours, and unchanged
// otherwise.
func (t Term) Paint(s Style, text string) string {
	if !t.Colour {
		return text
	}
	return "\x1b[" + string(s) + "m" + text + "\x1b[0m"
}
