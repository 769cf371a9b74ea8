// SPDX-License-Identifier: Apache-2.0

package schema

import "encoding/json"

// members calls member for each member of an object, which must read its value. null has
// none.
func (r *nodeReader) members(member func(key string) error) error {
	t, err := r.Token()
	switch {
	case err != nil || t == nil:
		return err
	case t != json.Delim('{'):
		return r.dropped(t)
	}
	return r.opened(member)
}

// opened is members behind the bracket.
func (r *nodeReader) opened(member func(key string) error) error {
	for r.More() {
		t, err := r.Token()
		if err != nil {
			return err
		}
		if err := member(t.(string)); err != nil { //nolint:forcetypeassert // the decoder sees to it
			return err
		}
	}
	_, err := r.Token()
	return err
}

// elements calls element for each element of an array, likewise.
func (r *nodeReader) elements(element func() error) error {
	t, err := r.Token()
	switch {
	case err != nil || t == nil:
		return err
	case t != json.Delim('['):
		return r.dropped(t)
	}
	for r.More() {
		if err := element(); err != nil {
			return err
		}
	}
	_, err = r.Token()
	return err
}

// dropped drops the value that begins with t, which is not of the type that is expected.
func (r *nodeReader) dropped(t json.Token) error {
	if _, opens := t.(json.Delim); opens {
		if err := r.close(); err != nil {
			return err
		}
	}
	return errOther
}

// skip reads a value and drops it.
func (r *nodeReader) skip() error {
	t, err := r.Token()
	if _, opens := t.(json.Delim); err != nil || !opens {
		return err
	}
	return r.close()
}

// close reads to the end of what is open.
func (r *nodeReader) close() error {
	for depth := 1; depth > 0; {
		t, err := r.Token()
		if err != nil {
			return err
		}
		switch t {
		case json.Delim('{'), json.Delim('['):
			if depth++; depth > maxSkipped {
				return errDeep
			}
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
	}
	return nil
}

// text reads a string, or the first one of a list of them.
func (r *nodeReader) text() (string, error) {
	t, err := r.Token()
	if err != nil || t == nil {
		return "", err
	}
	if t != json.Delim('[') {
		return r.isText(t)
	}
	if t, err = r.Token(); err != nil || t == json.Delim(']') {
		return "", err
	}
	text, wrong := r.isText(t)
	if err := r.close(); err != nil {
		return "", err
	}
	return text, wrong
}

// isText returns t if it is a string, and drops what else it is.
func (r *nodeReader) isText(t json.Token) (string, error) {
	text, is := t.(string)
	if !is {
		return "", r.dropped(t)
	}
	return text, nil
}

func (r *nodeReader) texts() (all []string, err error) {
	return all, r.elements(func() error {
		if err := r.count(); err != nil {
			return err
		}
		text, err := r.text()
		all = append(all, text)
		return err
	})
}

// truth reads a boolean. Any other value is false.
func (r *nodeReader) truth() (bool, error) {
	t, err := r.Token()
	is, ok := t.(bool)
	if err == nil && !ok && t != nil {
		err = r.dropped(t)
	}
	return is, err
}

// any reads a value as encoding/json does.
func (r *nodeReader) any() (made any, err error) {
	if err := r.count(); err != nil {
		return nil, err
	}
	t, err := r.Token()
	switch t {
	case json.Delim('{'):
		object := map[string]any{}
		err = r.below(func() error {
			return r.opened(func(key string) (err error) { object[key], err = r.any(); return err })
		})
		return object, err
	case json.Delim('['):
		var list []any
		err = r.below(func() error {
			for r.More() {
				element, err := r.any()
				if list = append(list, element); err != nil {
					return err
				}
			}
			_, err := r.Token()
			return err
		})
		return list, err
	}
	return t, err
}
