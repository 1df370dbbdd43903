"""Oracle redo, exported as rows of V$LOGMNR_CONTENTS: a log source whose CSN is the commit SCN."""
