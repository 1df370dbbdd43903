"""Oracle redo as rows in the shape of V$LOGMNR_CONTENTS: a log source whose CSN is the commit SCN."""
