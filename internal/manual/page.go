package manual

import (
	"fmt"
	"strings"

	"github.com/zkgo/zkgo/internal/version"
)

// page is a page in the language of man(7), or a part of one.
type page struct{ strings.Builder }

// item is a term and its explanation.
type item struct{ term, text string }

// header begins a page. It shows the date of the build, so that a version always has the same
// pages.
func (p *page) header(name, section string) {
	fmt.Fprintf(p, ".TH \"%s\" \"%s\" \"%s\" \"%s\" \"zkgo\"\n.nh\n", escape(strings.ToUpper(name)), section,
		version.BuildTime().UTC().Format("2006-01-02"), escape("zkgo "+version.Own()))
}

// section begins a section.
func (p *page) section(title string) { p.WriteString(".SH " + escape(strings.ToUpper(title)) + "\n") }

// subsection begins a subsection.
func (p *page) subsection(title string) { p.WriteString(".SS " + escape(title) + "\n") }

// paragraph writes a paragraph.
func (p *page) paragraph(text string) {
	p.begin()
	p.WriteString(escape(text) + "\n")
}

// begin separates a paragraph from the one before it.
func (p *page) begin() {
	text := strings.TrimSuffix(p.String(), "\n")
	if last := text[strings.LastIndexByte(text, '\n')+1:]; !strings.HasPrefix(last, ".S") {
		p.WriteString(".PP\n")
	}
}

// prose writes paragraphs that an empty line separates. Those with an indented line keep
// their lines.
func (p *page) prose(text string) {
	for block := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		if strings.Contains("\n"+block, "\n ") || strings.Contains("\n"+block, "\n\t") {
			p.literal(block)
		} else {
			p.paragraph(block)
		}
	}
}

// literal writes lines as they are.
func (p *page) literal(text string) {
	p.begin()
	p.WriteString(".EX\n" + escape(text) + "\n.EE\n")
}

// define writes a term and its explanation.
func (p *page) define(i item) {
	p.WriteString(".TP\n\\fB" + escape(i.term) + "\\fP\n" + escape(i.text) + "\n")
}

// list writes a section of items, if there are any.
func (p *page) list(title string, items []item) {
	if len(items) == 0 {
		return
	}
	p.section(title)
	for _, i := range items {
		p.define(i)
	}
}

// escape returns text that groff shows as it is: users copy options and file names, so a
// hyphen should stay one.
func escape(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "~", `\(ti`, "^", `\(ha`, "`", `\(ga`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
