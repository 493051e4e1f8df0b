package cli

// Term describes the terminal that something is written to. The zero Term is a
// file or a pipe.
type Term struct {
	// Width in columns; 0 if it is no terminal.
	Width int
	// Height in lines.
	Height int
	// Colour allows colours.
	Colour bool
}

// Style is how a piece of text looks on a terminal.
type Style string

// The styles.
const (
	Faint Style = "2"
	Bold  Style = "1"
	Path  Style = "36"
	Good  Style = "32"
	Bad   Style = "31"
)

// Paint returns text in a style if the terminal has colours, and as it is if not.
func (t Term) Paint(s Style, text string) string {
	if !t.Colour {
		return text
	}
	return "\x1b[" + string(s) + "m" + text + "\x1b[0m"
}
