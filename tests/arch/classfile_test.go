package arch

import (
	"archive/zip"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
)

// isPublic reports whether a Java class, and every class around it, is public according to
// its class file.
func isPublic(f *zip.File) (bool, error) {
	r, err := f.Open()
	if err != nil {
		return false, err
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	if err != nil {
		return false, err
	}
	c := classFile{data: data, at: 8}
	c.constants()
	flags := c.u2()
	if c.bad {
		return false, fmt.Errorf("no class file")
	}
	const public = 1
	if !strings.Contains(f.Name, "$") {
		return flags&public != 0, nil
	}
	c.u2() // this
	c.u2() // super
	for range c.u2() {
		c.u2() // interfaces
	}
	for range 2 { // fields, methods
		for range c.u2() {
			c.skip(6)
			c.attributes(nil)
		}
	}
	named := true
	all := public
	c.attributes(func(name string, a *classFile) {
		if name != "InnerClasses" {
			return
		}
		for range a.u2() {
			inner, outer, simple, access := c.class(a.u2()), a.u2(), a.u2(), a.u2()
			if inner+".class" == f.Name || strings.HasPrefix(f.Name, inner+"$") {
				all &= access
				named = named && outer != 0 && simple != 0
			}
		}
	})
	return named && all&public != 0 && !c.bad, nil
}

// classFile reads a Java class file from front to end.
type classFile struct {
	data    []byte
	at      int
	bad     bool
	texts   map[int]string
	classes map[int]int // index of the name
}

func (c *classFile) take(n int) []byte {
	if n < 0 || c.at+n > len(c.data) {
		c.bad = true
		return make([]byte, 8)
	}
	c.at += n
	return c.data[c.at-n : c.at]
}

func (c *classFile) skip(n int) { c.take(n) }

func (c *classFile) u2() int { return int(binary.BigEndian.Uint16(c.take(2))) }

func (c *classFile) class(i int) string { return c.texts[c.classes[i]] }

// constants reads the constant pool.
func (c *classFile) constants() {
	c.texts, c.classes = make(map[int]string), make(map[int]int)
	for i, n := 1, c.u2(); i < n && !c.bad; i++ {
		switch tag := c.take(1)[0]; tag {
		case 1: // text
			c.texts[i] = string(c.take(c.u2()))
		case 7: // class
			c.classes[i] = c.u2()
		case 8, 16, 19, 20:
			c.skip(2)
		case 15:
			c.skip(3)
		case 3, 4, 9, 10, 11, 12, 17, 18:
			c.skip(4)
		case 5, 6: // long and double occupy two places
			c.skip(8)
			i++
		default:
			c.bad = true
		}
	}
}

// attributes reads attributes, and calls each for every attribute.
func (c *classFile) attributes(each func(name string, a *classFile)) {
	for range c.u2() {
		name := c.texts[c.u2()]
		content := c.take(int(binary.BigEndian.Uint32(c.take(4))))
		if each != nil {
			each(name, &classFile{data: content})
		}
	}
}
