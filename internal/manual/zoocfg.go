package manual

import (
	"strings"

	"github.com/zkgo/zkgo/internal/version"
	"github.com/zkgo/zkgo/internal/zoocfg"
)

// zooCfg returns zoo.cfg(5), from the same descriptions of the keys that zkgo config check
// prints.
func zooCfg() string {
	var p page
	p.header("zoo.cfg", "5")
	p.section("NAME")
	p.WriteString("zoo.cfg \\- configuration of a zkgo or ZooKeeper server\n")
	p.section("SYNOPSIS")
	p.WriteString("\\fBzkgo server\\fP \\fIzoo.cfg\\fP\n")
	p.section("DESCRIPTION")
	p.paragraph("zkgo reads the same file as Apache ZooKeeper " + version.Compatible + `. It is a Java properties file: each line is key=value, a line that begins with # is a comment, and \ is an escape character.`)
	p.paragraph(`A server reads, besides this file, the list of servers in dynamicConfigFile, and its number in dataDir/myid. ZooKeeper's system properties are settings, too: -Dzookeeper.KEY=VALUE in the variables SERVER_JVMFLAGS and JVMFLAGS. A line of the file overrides a property, and the flag --set KEY=VALUE overrides both.`)
	p.paragraph("zkgo config check explains a file and finds mistakes in it. zkgo config show prints every value, also the defaults. An unknown key is a warning. The keys of ZooKeeper that zkgo doesn't need are accepted, and the server logs which ones have no effect.")
	section := ""
	var idle []item
	for _, d := range zoocfg.Descriptions() {
		if d.Verdict == zoocfg.Meaningless {
			idle = append(idle, item{d.Key, sentence(d.Words)})
			continue
		}
		if d.Section != section {
			section = d.Section
			p.section(section)
		}
		words := d.Words
		if d.Verdict != zoocfg.Same {
			words = string(d.Verdict) + ": " + words
		}
		p.define(item{d.Key, sentence(words)})
	}
	p.list("keys without effect", idle)
	p.section("EXAMPLE")
	p.literal(strings.Join([]string{
		"tickTime=2000", "initLimit=10", "syncLimit=5", "dataDir=/var/lib/zkgo", "clientPort=2181",
		"server.1=zk1:2888:3888", "server.2=zk2:2888:3888", "server.3=zk3:2888:3888",
	}, "\n"))
	p.list("FILES", []item{packagedZooCfg, myid, dynamic})
	p.section("SEE ALSO")
	p.WriteString("\\fBzkgo\\-server(1)\\fP, \\fBzkgo\\-config\\-check(1)\\fP, \\fBzkgo\\-config\\-show(1)\\fP\n")
	return p.String()
}
