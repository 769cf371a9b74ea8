// SPDX-License-Identifier: Apache-2.0

package jsonpatch

// indexed is the number of members from which on an object has an index.
const indexed = 16

// object is an open object. Members keep their order; new ones go to the end.
type object struct {
	members []member
	index   map[string]int // places in members by name; nil for small objects
	removed int            // how many members are zero
}

// member is one member of an object; the zero member has been removed.
type member struct {
	key   string // as spelled, quotes included
	name  string // what key stands for
	value node
}

func parseObject(text string, m *meter) (container, error) {
	o := &object{}
	err := readObject(text, func(key, value string, nesting int) error {
		name := unquote(key)
		if o.find(name) >= 0 {
			return duplicate()
		}
		o.push(member{key, name, node{text: value, nesting: nesting}})
		return m.spend(len(key) + len(value) + perMember)
	})
	if err != nil {
		return nil, err
	}
	m.kept += perOpenMember * cap(o.members)
	return o, nil
}

// perOpenMember is about the size of a member and of its place in the index, in
// bytes.
const perOpenMember = 144

// find returns the place of the member called name, or -1.
func (o *object) find(name string) int {
	if o.index != nil {
		if i, ok := o.index[name]; ok {
			return i
		}
		return -1
	}
	for i := range o.members {
		if o.members[i].name == name && o.members[i].key != "" {
			return i
		}
	}
	return -1
}

// usualMembers is how many members most objects have at most.
const usualMembers = 4

func (o *object) push(last member) {
	if o.members == nil {
		o.members = make([]member, 0, usualMembers)
	}
	o.members = append(o.members, last)
	switch {
	case o.index != nil:
		o.index[last.name] = len(o.members) - 1
	case len(o.members) > indexed:
		o.buildIndex()
	}
}

func (o *object) buildIndex() {
	o.index = make(map[string]int, 2*len(o.members))
	for i := range o.members {
		if o.members[i].key != "" {
			o.index[o.members[i].name] = i
		}
	}
}

func (o *object) size() int { return len(o.members) - o.removed }

func (o *object) get(name string) (*node, error) {
	i := o.find(name)
	if i < 0 {
		return nil, nil
	}
	return &o.members[i].value, nil
}

func (o *object) add(name string, n node, _ *meter) error {
	if i := o.find(name); i >= 0 {
		o.members[i].value = n
	} else {
		o.push(member{quote(name), name, n})
	}
	return nil
}

func (o *object) remove(name string, _ *meter) error {
	i := o.find(name)
	if i < 0 {
		return reason("there is no such member")
	}
	// The place stays empty: the index counts on the places of the others.
	o.members[i] = member{}
	o.removed++
	delete(o.index, name)
	return nil
}

func (o *object) append(dst []byte) []byte {
	dst = append(dst, '{')
	separate := false
	for i := range o.members {
		if o.members[i].key == "" {
			continue
		}
		if separate {
			dst = append(dst, ',')
		}
		separate = true
		dst = append(dst, o.members[i].key...)
		dst = append(dst, ':')
		dst = o.members[i].value.append(dst)
	}
	return append(dst, '}')
}

func (o *object) depth() int {
	deepest := 0
	for i := range o.members {
		deepest = max(deepest, o.members[i].value.depth())
	}
	return deepest + 1
}
