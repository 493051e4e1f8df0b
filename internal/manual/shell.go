package manual

import (
	"slices"
	"strings"

	"github.com/zkgo/zkgo/internal/cli"
)

// shellCommands writes the section about the commands of zkgo cli.
func shellCommands(p *page) {
	p.section("COMMANDS")
	for _, c := range cli.Commands() {
		p.subsection(strings.TrimSpace(c.Name + " " + c.Usage))
		p.paragraph(sentence(c.Short))
		options := slices.Clone(c.Options)
		slices.SortStableFunc(options, func(a, b cli.Option) int { return strings.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name)) })
		for _, o := range options {
			term := "-" + o.Name
			if o.Arg != "" {
				term += " " + o.Arg
			}
			p.define(item{term, sentence(o.Help)})
		}
		if c.More != "" {
			p.literal(c.More)
		}
	}
}

// sentence ends a text with a period.
func sentence(text string) string {
	if text == "" || strings.ContainsRune(".!?", rune(text[len(text)-1])) {
		return text
	}
	return text + "."
}
